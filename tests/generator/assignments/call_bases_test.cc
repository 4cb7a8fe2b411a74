// Bases of rules whose calls stand among other operators.
#include "generator/assignments/call_bases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "generator/assignments/bases.h"
#include "generator/assignments/sample_calls.h"

namespace isomer {
namespace {

PatternNode Pool(PatternRef of) {
  return {OpKind::kMaxPool,
          {{"kernel", AttributeVariable{"kernel"}},
           {"padding", AttributeVariable{"padding"}},
           {"stride", AttributeVariable{"stride"}}},
          {of}};
}

// concat(max_pool(x0), max_pool(x1); axis=-3) -> max_pool(concat(x0, x1; axis=-3))
Rule PoolsRule() {
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{4, 4}};
  for (const char* name : {"kernel", "padding", "stride"}) {
    rule.variables.push_back({name, VariableKind::kAttribute});
  }
  const AttributePattern axis{"axis", IntExpr::Constant(-3)};
  rule.source.nodes = {Pool(PatternRef::Input(0)),
                       Pool(PatternRef::Input(1)),
                       {OpKind::kConcat, {axis}, {PatternRef::Node(0), PatternRef::Node(1)}}};
  rule.source.outputs = {PatternRef::Node(2)};
  rule.target.nodes = {{OpKind::kConcat, {axis}, {PatternRef::Input(0), PatternRef::Input(1)}},
                       Pool(PatternRef::Node(0))};
  rule.target.outputs = {PatternRef::Node(1)};
  return rule;
}

TEST(CallBases, CallsOfOneOperatorAreTheSameCall) {
  TypeOracle oracle;
  const Rule rule = PoolsRule();
  const std::vector<Binding> bases = BasesAroundCall(rule, 0, &oracle);
  EXPECT_EQ(bases.size(), SampleCalls(OpKind::kMaxPool).size());
  for (const Binding& base : bases) {
    EXPECT_EQ(base.inputs[0], base.inputs[1]);
    EXPECT_TRUE(InferPattern(rule.source, base, &oracle).has_value());
  }
  EXPECT_EQ(BasesOf(rule, 8, &oracle).size(), bases.size());
}

TEST(CallBases, OperandsThatAreConcatsAreTakenApart) {
  TypeOracle oracle;
  Rule rule = PoolsRule();
  std::swap(rule.source, rule.target);
  const std::vector<Binding> bases = BasesOf(rule, 8, &oracle);
  ASSERT_FALSE(bases.empty());
  for (const Binding& base : bases) {
    EXPECT_TRUE(InferPattern(rule.source, base, &oracle).has_value());
  }
}

TEST(CallBases, SizesOfSplitsAreThoseOfTheParts) {
  // max_pool(split(x0; axis=i, sizes=[s, t])#1)
  Rule rule = PoolsRule();
  rule.num_inputs = 1;
  rule.ranks = {{4}};
  rule.variables.push_back({"i", VariableKind::kAxis});
  rule.variables.push_back({"s", VariableKind::kSize});
  rule.variables.push_back({"t", VariableKind::kSize});
  rule.source.nodes = {
      {OpKind::kSplit,
       {{"axis", IntExpr::Variable("i")},
        {"sizes", std::vector<IntExpr>{IntExpr::Variable("s"), IntExpr::Variable("t")}}},
       {PatternRef::Input(0)}},
      Pool(PatternRef::Node(0, 1))};
  rule.source.outputs = {PatternRef::Node(1)};
  TypeOracle oracle;
  const std::vector<Binding> bases = BasesOf(rule, 8, &oracle);
  EXPECT_EQ(bases.size(), 4 * SampleCalls(OpKind::kMaxPool).size()) << "one for each axis";
  for (const Binding& base : bases) {
    const int64_t axis = 4 + base.variables.at("i");
    EXPECT_EQ(base.inputs[0].dims[axis].size, base.variables.at("s") + base.variables.at("t"));
  }
}

TEST(CallBases, ASplitDimTiesAxes) {
  // relu(add(x0, x1)), where a dim is of operand 1 alone.
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{1, 2}, {1, 3}};
  rule.variables = {{"i", VariableKind::kAxis}};
  rule.conditions = {{.kind = Condition::Kind::kSplitsDim,
                      .left = IntExpr::Constant(1),
                      .node = 0,
                      .operand_axes = {std::nullopt, IntExpr::Variable("i")},
                      .output_axes = {IntExpr::Variable("i")}}};
  rule.source.nodes = {{OpKind::kAdd, {}, {PatternRef::Input(0), PatternRef::Input(1)}},
                       {OpKind::kRelu, {}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target = rule.source;
  TypeOracle oracle;
  const std::vector<Binding> bases = BasesAroundCall(rule, 0, &oracle);
  ASSERT_FALSE(bases.empty());
  for (const Binding& base : bases) {
    EXPECT_LT(base.variables.at("i"), -base.inputs[0].rank()) << "x0 is broadcast along it";
  }
}

TEST(CallBases, TheCallIsASampleCallWhateverThePatternHolds) {
  // relu(one_hot(x0; axis=0, depth=depth))
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{1}};
  rule.variables = {{"depth", VariableKind::kAttribute}};
  rule.source.nodes = {{OpKind::kOneHot,
                        {{"axis", IntExpr::Constant(0)}, {"depth", AttributeVariable{"depth"}}},
                        {PatternRef::Input(0)}},
                       {OpKind::kRelu, {}, {PatternRef::Node(0)}}};
  rule.source.outputs = {PatternRef::Node(1)};
  rule.target = rule.source;
  TypeOracle oracle;
  const std::vector<Binding> bases = BasesAroundCall(rule, 0, &oracle);
  ASSERT_FALSE(bases.empty());
  const std::vector<OperatorCall>& calls = SampleCalls(OpKind::kOneHot);
  for (const Binding& base : bases) {
    const auto typed = InferPattern(rule.source, base, &oracle);
    ASSERT_TRUE(typed.has_value());
    EXPECT_EQ(std::count(calls.begin(), calls.end(), OperatorCall{typed->ops[0], base.inputs}), 1);
  }
}

TEST(CallBases, NoneIfAConstantDiffers) {
  Rule rule = PoolsRule();
  rule.source.nodes[2].attributes[0].value = IntExpr::Constant(-9);
  TypeOracle oracle;
  EXPECT_TRUE(BasesOf(rule, 8, &oracle).empty());
}

}  // namespace
}  // namespace isomer
