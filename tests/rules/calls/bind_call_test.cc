#include "rules/calls/bind_call.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

OperatorCall Call(const std::string& text) { return *ParseCall(text); }

TEST(BindAttributes, AxesCountFromTheEnd) {
  const PatternNode softmax{
      OpKind::kSoftmax, {{"axis", IntExpr::Variable("i")}}, {PatternRef::Input(0)}};
  Binding binding;
  EXPECT_TRUE(BindAttributes(softmax, Call("softmax(axis=0) f32[4,6]"), &binding));
  EXPECT_EQ(binding.variables.at("i"), -2);
  EXPECT_FALSE(BindAttributes(softmax, Call("softmax(axis=-1) f32[4,6]"), &binding))
      << "the axis is bound";
}

TEST(BindAttributes, TheAxisOfAOneHotIsOneOfItsOutput) {
  PatternNode one_hot{OpKind::kOneHot,
                      {{"axis", IntExpr::Constant(0)}, {"depth", AttributeVariable{"depth"}}},
                      {PatternRef::Input(0)}};
  Binding binding;
  EXPECT_TRUE(BindAttributes(one_hot, Call("one_hot(depth=4,axis=0) i64[2,6]"), &binding));
  one_hot.attributes[0].value = IntExpr::Constant(-2);
  EXPECT_FALSE(BindAttributes(one_hot, Call("one_hot(depth=4,axis=0) i64[2,6]"), &binding));
}

TEST(BindAttributes, AConstantFactorOfANumberIsTakenOut) {
  const OperatorCall call = Call("scale(factor=3) f32[4]");
  const PatternNode scale{
      OpKind::kScale, {{"factor", NumberExpr{2, {"f"}}}}, {PatternRef::Input(0)}};
  Binding binding;
  ASSERT_TRUE(BindAttributes(scale, call, &binding));
  EXPECT_EQ(binding.numbers.at("f"), 1.5);
  EXPECT_EQ(*InstantiateOperator(scale, binding, 1), call.op);
}

TEST(BindAttributes, ConstantsMustBeTheCalls) {
  const PatternNode elu{OpKind::kElu, {{"alpha", NumberExpr{1, {}}}}, {PatternRef::Input(0)}};
  Binding binding;
  EXPECT_TRUE(BindAttributes(elu, Call("elu(alpha=1) f32[4]"), &binding));
  EXPECT_FALSE(BindAttributes(elu, Call("elu(alpha=2) f32[4]"), &binding));
}

TEST(BindAxes, EveryAxisThatIsNamedIsOfTheDim) {
  Condition split{.kind = Condition::Kind::kSplitsDim,
                  .node = 0,
                  .operand_axes = {IntExpr::Variable("i"), std::nullopt},
                  .output_axes = {IntExpr::Variable("i")}};
  const OperatorCall call = Call("matmul f32[2,4,6] f32[6,8]");
  const std::vector<SplittableDim> dims = SplittableDims(call.op, call.operands);
  std::vector<int64_t> bound;
  for (const SplittableDim& dim : dims) {
    Binding binding;
    if (BindAxes(split, dim, &binding)) bound.push_back(binding.variables.at("i"));
  }
  EXPECT_EQ(bound, (std::vector<int64_t>{-3, -2})) << "not columns, nor what is summed over";
  split.output_axes = {IntExpr::Constant(-3)};
  for (const SplittableDim& dim : dims) {
    Binding binding;
    EXPECT_EQ(BindAxes(split, dim, &binding), dim.output_axes[0] == -3);
  }
  split.output_axes.clear();
  for (const SplittableDim& dim : dims) {
    Binding binding;
    EXPECT_FALSE(BindAxes(split, dim, &binding)) << "the call has an output";
  }
}

}  // namespace
}  // namespace isomer
