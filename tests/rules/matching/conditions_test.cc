// Where a rule may not be used although its pattern is there.
#include <gtest/gtest.h>

#include "pcg/ir/operator_facts.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

// scale(scale(x0; f); g) -> scale(x0; f*g)
Rule ScaleTwice() {
  Rule rule;
  rule.num_inputs = 1;
  rule.ranks = {{1}};
  rule.variables = {{"f", VariableKind::kNumber}, {"g", VariableKind::kNumber}};
  const auto scale = [](std::vector<std::string> factors, PatternRef input) {
    return PatternNode{OpKind::kScale, {{"factor", NumberExpr{1, std::move(factors)}}}, {input}};
  };
  rule.source = {{scale({"f"}, PatternRef::Input(0)), scale({"g"}, PatternRef::Node(0))},
                 {PatternRef::Node(1)}};
  rule.target = {{scale({"f", "g"}, PatternRef::Input(0))}, {PatternRef::Node(0)}};
  SetId(&rule);
  return rule;
}

Binding At(DataType dtype, double f, double g) {
  Binding binding;
  binding.inputs = {SequentialType({4}, dtype)};
  binding.numbers = {{"f", f}, {"g", g}};
  return binding;
}

TEST(Conditions, EquationsOverTheRealsAreNotUsedOnIntegersThatAreRounded) {
  const Rule rule = ScaleTwice();
  EXPECT_TRUE(Admits(rule, At(DataType::kFloat32, 0.5, 2)));
  EXPECT_TRUE(Admits(rule, At(DataType::kBFloat16, 0.5, 2)));
  EXPECT_TRUE(Admits(rule, At(DataType::kInt64, -1, 2)));
  // 3 * 0.5 is 1 to an integer, and 1 * 2 is 2.
  EXPECT_FALSE(Admits(rule, At(DataType::kInt64, 0.5, 2)));
  EXPECT_FALSE(Admits(rule, At(DataType::kInt32, 2, 0.5)));
}

// 1e-162 * 1e-162 is 0 in doubles, and a tenth of ten is not one: what would have to be rounded is
// not what the rule says.
TEST(Conditions, NumbersAreNotRounded) {
  const Rule rule = ScaleTwice();
  for (const auto& [f, g] : std::vector<std::pair<double, double>>{
           {1e-162, 1e-162}, {0.1, 10}, {0.1, 0.1}, {1e200, 1e200}, {1.0 / 3, 3}}) {
    const Binding binding = At(DataType::kFloat32, f, g);
    EXPECT_FALSE(Admits(rule, binding)) << f << " * " << g;
    EXPECT_FALSE(InstantiatePattern(rule.target, binding).ok()) << f << " * " << g;
    EXPECT_EQ(Evaluate(NumberExpr{1, {"f", "g"}}, binding), std::nullopt);
  }
  EXPECT_EQ(Evaluate(NumberExpr{1, {"f", "g"}}, At(DataType::kFloat32, 0.125, -3)), -0.375);
}

TEST(Conditions, CastsRoundUnlessTheyOnlyRename) {
  const auto rounds = [](DataType from, DataType to) {
    return RoundsIntegers({OpKind::kCast, {{"to", static_cast<int64_t>(to)}}}, from, to);
  };
  EXPECT_TRUE(rounds(DataType::kFloat32, DataType::kInt64));
  EXPECT_TRUE(rounds(DataType::kInt64, DataType::kBool));
  EXPECT_FALSE(rounds(DataType::kInt64, DataType::kInt32));
  EXPECT_FALSE(rounds(DataType::kBool, DataType::kInt32));
  EXPECT_FALSE(rounds(DataType::kInt64, DataType::kFloat32));
}

TEST(Conditions, QuotientsAndMeansOfIntegersRound) {
  for (OpKind kind : {OpKind::kDiv, OpKind::kPow, OpKind::kReduceMean}) {
    EXPECT_TRUE(RoundsIntegers(Operator(kind), DataType::kInt64, DataType::kInt64));
    EXPECT_FALSE(RoundsIntegers(Operator(kind), DataType::kFloat32, DataType::kFloat32));
  }
  EXPECT_FALSE(RoundsIntegers(Operator(OpKind::kAdd), DataType::kInt64, DataType::kInt64));
}

TEST(Conditions, IntegersThatAreMadeOfFloatsRound) {
  Rule rule = ScaleTwice();
  const Binding binding = At(DataType::kFloat32, 0.5, 2);
  EXPECT_TRUE(Admits(rule, binding));
  for (Pattern* side : {&rule.source, &rule.target}) {
    for (PatternNode& node : side->nodes) {
      for (PatternRef& input : node.inputs) {
        input = input.node < 0 ? PatternRef::Node(0) : PatternRef::Node(input.node + 1);
      }
    }
    side->nodes.insert(side->nodes.begin(), {OpKind::kArgMax,
                                             {{"axis", IntExpr::Constant(-1)},
                                              {"keepdims", IntExpr::Constant(1)},
                                              {"last", IntExpr::Constant(0)}},
                                             {PatternRef::Input(0)}});
    side->outputs[0].node += 1;
  }
  SetId(&rule);
  ASSERT_TRUE(ValidateRule(rule).ok()) << ValidateRule(rule);
  EXPECT_FALSE(Admits(rule, binding));
}

TEST(Conditions, SumsOfTruthValuesAreNotTheirOr) {
  const auto rounds = [](int64_t reduction, DataType type) {
    return RoundsIntegers(
        {OpKind::kScatterElements, {{"axis", int64_t{0}}, {"reduction", reduction}}}, type, type);
  };
  EXPECT_TRUE(rounds(1, DataType::kBool));
  EXPECT_FALSE(rounds(0, DataType::kBool));
  EXPECT_FALSE(rounds(2, DataType::kBool));
  EXPECT_FALSE(rounds(1, DataType::kInt64));
}

TEST(Conditions, RulesWithParallelOperatorsDoNotGoByStructure) {
  Rule rule = ScaleTwice();
  rule.conditions = {{.kind = Condition::Kind::kByStructure}};
  SetId(&rule);
  EXPECT_TRUE(ValidateRule(rule).ok());
  rule.target.nodes.push_back(
      {OpKind::kReplicate, {{"degree", IntExpr::Constant(2)}}, {PatternRef::Node(0)}});
  rule.target.outputs = {PatternRef::Node(1)};
  SetId(&rule);
  EXPECT_NE(std::string(ValidateRule(rule).message()).find("by_structure"), std::string::npos);
}

}  // namespace
}  // namespace isomer
