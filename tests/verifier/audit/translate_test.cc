// What a foreign rule says as a rule of ours.
#include "verifier/audit/translate.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace isomer {
namespace {

using Parameters = std::map<std::string, int64_t>;

ForeignTensor In(int i) { return {-1 - i, 0}; }
ForeignTensor Out(int op, int output = 0) { return {op, output}; }

ForeignRule RuleOf(std::vector<ForeignOperator> source, std::vector<ForeignOperator> target,
                   int outputs = 1) {
  ForeignRule rule{"r", std::move(source), std::move(target), {}};
  for (int o = 0; o < outputs; ++o) {
    // Of the last operator if it has so many, else of the last operators.
    auto mapped = [&](const std::vector<ForeignOperator>& ops) {
      const int op = static_cast<int>(ops.size()) - 1;
      return NumOutputs(ops[op]) >= outputs ? Out(op, o) : Out(op - outputs + 1 + o);
    };
    rule.outputs.push_back({mapped(rule.source), mapped(rule.target)});
  }
  return rule;
}

std::string Equation(const ForeignRule& rule, ForeignFormat format, Reading reading = {}) {
  const auto result = Translate(rule, format, reading);
  if (auto* failed = std::get_if<Untranslated>(&result)) return failed->reason;
  return std::get<Translation>(result).rule.ToString();
}

Untranslated::Why Why(const ForeignRule& rule, ForeignFormat format, Reading reading = {}) {
  return std::get<Untranslated>(Translate(rule, format, reading)).why;
}

std::vector<std::string> Texts(const std::vector<Condition>& conditions) {
  std::vector<std::string> texts;
  for (const Condition& condition : conditions) texts.push_back(condition.ToString());
  return texts;
}

const Parameters kConv3x3 = {{"PM_KERNEL_H", 3}, {"PM_KERNEL_W", 3}, {"PM_STRIDE_H", 1},
                             {"PM_STRIDE_W", 1}, {"PM_PAD", 0},      {"PM_ACTI", 0}};

Parameters Axis(int64_t axis, int64_t dims) { return {{"PM_AXIS", axis}, {"PM_NUMDIM", dims}}; }
Parameters Dim(int64_t dim) { return {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}; }

TEST(Translate, FusedActivationBecomesACall) {
  const ForeignRule rule = RuleOf({{"OP_MATMUL", {In(0), In(1)}, {{"PM_ACTI", 2}}}},
                                  {{"OP_MATMUL", {In(0), In(1)}, {{"PM_ACTI", 3}}}});
  EXPECT_EQ(Equation(rule, ForeignFormat::kTaso), "relu(matmul(x0, x1)) -> tanh(matmul(x0, x1))");
}

// FlexFlow itself counts activations from 10, in another order than TASO.
TEST(Translate, UnityCountsActivationsInTwoWays) {
  const ForeignRule rule = RuleOf({{"OP_MATMUL", {In(0), In(1)}, {{"PM_ACTI", 1}}}},
                                  {{"OP_MATMUL", {In(0), In(1)}, {{"PM_ACTI", 11}}}});
  EXPECT_EQ(Equation(rule, ForeignFormat::kUnity),
            "sigmoid(matmul(x0, x1)) -> relu(matmul(x0, x1))");
}

TEST(Translate, TasoSplitsWhereItJoined) {
  const ForeignRule rule = RuleOf({{"OP_RELU", {In(0)}, {}}, {"OP_RELU", {In(1)}, {}}},
                                  {{"OP_CONCAT", {In(0), In(1)}, Axis(0, 2)},
                                   {"OP_RELU", {Out(0)}, {}},
                                   {"OP_SPLIT", {Out(1)}, {{"PM_AXIS", 0}, {"PM_NUM_OUTPUTS", 2}}}},
                                  2);
  const std::string text = Equation(rule, ForeignFormat::kTaso);
  EXPECT_TRUE(absl::StrContains(text, "axis=-2, sizes=[size(x0,-2),size(x1,-2)]")) << text;
}

// Three tensors joined, the outermost seam is between the second and the third.
TEST(Translate, TasoSplitsTheOutermostSeamFirst) {
  const ForeignRule rule = RuleOf({{"OP_CONCAT", {In(0), In(1), In(2)}, Axis(1, 2)},
                                   {"OP_SPLIT", {Out(0)}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 3}}}},
                                  {{"OP_CONCAT", {In(0), In(1), In(2)}, Axis(1, 2)},
                                   {"OP_SPLIT", {Out(0)}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 2}}}},
                                  2);
  EXPECT_EQ(Equation(rule, ForeignFormat::kTaso),
            "mapped output 0 of the target: sizes size(x0,1) and size(x0,1) + size(x1,1) differ");
  ForeignRule same = rule;
  same.target = same.source;
  const std::string text = Equation(same, ForeignFormat::kTaso);
  EXPECT_TRUE(absl::StrContains(text, "sizes=[size(x0,-1),size(x1,-1),size(x2,-1)]")) << text;
}

TEST(Translate, UnitySplitsEvenly) {
  const Parameters halves = {{"PM_AXIS", 2}, {"PM_NUM_OUTPUTS", 2}};
  const ForeignRule rule = RuleOf({{"OP_SPLIT", {In(0)}, halves}},
                                  {{"OP_RELU", {In(0)}, {}}, {"OP_SPLIT", {Out(0)}, halves}}, 2);
  const std::string text = Equation(rule, ForeignFormat::kUnity);
  EXPECT_TRUE(absl::StrContains(text, "{split(x0; axis=-1, sizes=[n0,n0])#0")) << text;
  EXPECT_TRUE(absl::StrContains(text, "split(relu(x0); axis=-1, sizes=[n0,n0])#1")) << text;
}

TEST(Translate, KernelsAreStatedAndSamePads) {
  const ForeignRule rule =
      RuleOf({{"OP_CONV2D", {In(0), In(1)}, kConv3x3}}, {{"OP_CONV2D", {In(0), In(1)}, kConv3x3}});
  const auto result = Translate(rule, ForeignFormat::kTaso, {});
  const Translation& translation = std::get<Translation>(result);
  EXPECT_EQ(translation.rule.ranks, (std::vector<std::vector<int>>{{4, 4}}));
  EXPECT_FALSE(translation.depends_on_rank);
  EXPECT_EQ(Texts(translation.stated),
            (std::vector<std::string>{"size(x1,-2) == 3", "size(x1,-1) == 3"}));
  EXPECT_TRUE(
      absl::StrContains(translation.rule.ToString(), "groups=1, padding=[1,1,1,1], stride=[1,1]"));
}

// Twice the channels for one kernel: two groups, as TASO counts them.
TEST(Translate, GroupsFollowFromChannels) {
  const ForeignRule rule = RuleOf({{"OP_CONV2D", {In(0), In(1)}, kConv3x3},
                                   {"OP_CONV2D", {In(2), In(3)}, kConv3x3},
                                   {"OP_CONCAT", {Out(0), Out(1)}, Axis(1, 4)}},
                                  {{"OP_CONCAT", {In(0), In(2)}, Axis(1, 4)},
                                   {"OP_CONCAT", {In(1), In(3)}, Axis(0, 4)},
                                   {"OP_CONV2D", {Out(0), Out(1)}, kConv3x3}});
  const auto result = Translate(rule, ForeignFormat::kTaso, {});
  const Translation& translation = std::get<Translation>(result);
  EXPECT_TRUE(absl::StrContains(translation.rule.ToString(), "groups=2"));
  EXPECT_EQ(Texts(translation.needed),
            (std::vector<std::string>{"size(x2,-3) == size(x0,-3)", "size(x3,-3) == size(x0,-3)"}));
}

TEST(Translate, EnlargedKernelIsAmidZeros) {
  Parameters narrow = kConv3x3;
  narrow["PM_KERNEL_W"] = 1;
  const ForeignRule rule =
      RuleOf({{"OP_CONV2D", {In(0), In(1)}, narrow}},
             {{"OP_ENLARGE", {In(1)}, {{"PM_KERNEL_H", 3}, {"PM_KERNEL_W", 3}}},
              {"OP_CONV2D", {In(0), Out(0)}, kConv3x3}});
  const std::string text = Equation(rule, ForeignFormat::kTaso);
  EXPECT_TRUE(absl::StrContains(text, "padding=[0,0,0,1,0,0,0,1]")) << text;
}

// PM_PERM 2 is [1,0]: 1 * 2 + 0. PM_PERM 3 is [1,1].
TEST(Translate, PermutationIsDigits) {
  auto transposed = [](int64_t perm) {
    return ForeignOperator{"OP_TRANSPOSE", {In(0)}, {{"PM_NUMDIM", 2}, {"PM_PERM", perm}}};
  };
  EXPECT_EQ(Equation(RuleOf({transposed(2)}, {transposed(2)}), ForeignFormat::kTaso),
            "transpose(x0; perm=swap(-2,-1)) -> transpose(x0; perm=swap(-2,-1))");
  EXPECT_EQ(Why(RuleOf({transposed(3)}, {transposed(2)}), ForeignFormat::kTaso),
            Untranslated::Why::kSourceIllTyped);
}

// Dim 0 is the replica dim: Replicate makes copies, Concat partials; dim 1 is the first axis.
TEST(Translate, UnityCountsTheReplicaDimFirst) {
  const ForeignRule rule =
      RuleOf({{"OP_PARTITION", {In(0)}, Dim(1)}, {"OP_REPLICATE", {Out(0)}, Dim(0)}},
             {{"OP_CONCAT", {In(0), In(0)}, Axis(0, 3)}, {"OP_REDUCE", {Out(0)}, Dim(0)}});
  EXPECT_EQ(Equation(rule, ForeignFormat::kUnity),
            "replicate(partition(x0; axis=-2, degree=2); degree=2) -> "
            "reduce(concat_partials(x0, x0); degree=2)");
}

// Of a logical dim they repeat the tensor, and add its pieces.
TEST(Translate, UnityReplicatesAndReducesLogicalDims) {
  const ForeignRule rule =
      RuleOf({{"OP_REPLICATE", {In(0)}, Dim(1)}, {"OP_REDUCE", {Out(0)}, Dim(1)}},
             {{"OP_EW_ADD", {In(0), In(0)}, {}}});
  EXPECT_EQ(Equation(rule, ForeignFormat::kUnity),
            "add(split(combine(partition(concat(x0, x0; axis=-2); axis=-2, degree=2); axis=-2, "
            "degree=2); axis=-2, sizes=[size(x0,-2),size(x0,-2)])#0, split(combine(partition("
            "concat(x0, x0; axis=-2); axis=-2, degree=2); axis=-2, degree=2); axis=-2, "
            "sizes=[size(x0,-2),size(x0,-2)])#1) -> add(x0, x0)");
}

TEST(Translate, WhatUnityDoesToTheReplicaDimAloneIsOutside) {
  const ForeignOperator relu{"OP_RELU", {In(0)}, {}};
  for (const ForeignOperator& op : {ForeignOperator{"OP_PARTITION", {In(0)}, Dim(0)},
                                    {"OP_COMBINE", {In(0)}, Dim(0)},
                                    {"OP_LINEAR", {In(0)}, {}},
                                    {"OP_CONV2D", {In(0)}, {}},
                                    {"OP_SOFTMAX", {In(0)}, {}}}) {
    EXPECT_EQ(Why(RuleOf({relu}, {op}), ForeignFormat::kUnity), Untranslated::Why::kOutside)
        << op.type;
  }
}

// [samples, in] times [out, in].
TEST(Translate, LinearTakesItsWeightTransposed) {
  const ForeignRule rule =
      RuleOf({{"OP_LINEAR", {In(0), In(1)}, {}}}, {{"OP_LINEAR", {In(0), In(1)}, {}}});
  const std::string text = Equation(rule, ForeignFormat::kUnity);
  EXPECT_TRUE(absl::StartsWith(text, "matmul(x0, transpose(x1; perm=swap(-2,-1))) -> ")) << text;
}

TEST(Translate, ScalarsAreNumbers) {
  const ForeignRule rule =
      RuleOf({{"OP_MUL", {In(0), In(1)}, {}}}, {{"OP_MUL", {In(0), In(1)}, {}}});
  const auto result = Translate(rule, ForeignFormat::kTaso, {.rank = 3});
  EXPECT_EQ(std::get<Translation>(result).rule.ToString(),
            "scale(x0; factor=f0) -> scale(x0; factor=f0)");
  EXPECT_EQ(std::get<Translation>(result).rule.ranks, (std::vector<std::vector<int>>{{3}}));
  EXPECT_TRUE(std::get<Translation>(result).depends_on_rank);
}

TEST(Translate, ShapesThatNeverFit) {
  // An operand that is joined to itself has twice the size.
  const ForeignRule doubled =
      RuleOf({{"OP_RELU", {In(0)}, {}}}, {{"OP_CONCAT", {In(0), In(0)}, Axis(0, 2)}});
  EXPECT_EQ(Why(doubled, ForeignFormat::kTaso), Untranslated::Why::kTargetIllTyped);
  EXPECT_EQ(Equation(doubled, ForeignFormat::kTaso),
            "mapped output 0 of the target: sizes size(x0,0) and 2*size(x0,0) differ");
  const ForeignRule new_input = RuleOf({{"OP_RELU", {In(0)}, {}}}, {{"OP_RELU", {In(1)}, {}}});
  EXPECT_EQ(Why(new_input, ForeignFormat::kTaso), Untranslated::Why::kTargetIllTyped);
  EXPECT_EQ(Equation(new_input, ForeignFormat::kTaso),
            "target operator 0 (OP_RELU): uses input -2, which the source does not have");
  const ForeignRule absent_axis =
      RuleOf({{"OP_SPLIT", {In(0)}, {{"PM_AXIS", 3}}}}, {{"OP_SPLIT", {In(0)}, {{"PM_AXIS", 3}}}});
  EXPECT_EQ(Why(absent_axis, ForeignFormat::kTaso, {.rank = 2}),
            Untranslated::Why::kSourceIllTyped);
}

}  // namespace
}  // namespace isomer
