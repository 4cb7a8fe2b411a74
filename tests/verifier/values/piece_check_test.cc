// Pieces of images: which partitions rules admit, and that the tasks are evaluated by themselves.
#include "verifier/values/piece_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "verifier/proving/prover.h"
#include "verifier/terms/representative_calls.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

// conv2d(x0, x1) -> combine(conv2d(partition(x0; axis=i0), replicate(x1)); axis=j0), all degrees d.
Rule SplitImage() {
  Rule rule;
  rule.num_inputs = 2;
  rule.ranks = {{4, 4}};
  PatternNode call{OpKind::kConv2d, {}, {PatternRef::Input(0), PatternRef::Input(1)}};
  for (const char* name : {"dilation", "groups", "padding", "stride"}) {
    call.attributes.push_back({name, AttributeVariable{name}});
    rule.variables.push_back({name, VariableKind::kAttribute});
  }
  rule.variables.insert(
      rule.variables.end(),
      {{"d", VariableKind::kDegree}, {"i0", VariableKind::kAxis}, {"j0", VariableKind::kAxis}});
  const AttributePattern degree{"degree", IntExpr::Variable("d")};
  PatternNode inner = call;
  inner.inputs = {PatternRef::Node(0), PatternRef::Node(1)};
  rule.source.nodes = {call};
  rule.source.outputs = {PatternRef::Node(0)};
  rule.target.nodes = {
      {OpKind::kPartition, {{"axis", IntExpr::Variable("i0")}, degree}, {PatternRef::Input(0)}},
      {OpKind::kReplicate, {degree}, {PatternRef::Input(1)}},
      inner,
      {OpKind::kCombine, {{"axis", IntExpr::Variable("j0")}, degree}, {PatternRef::Node(2)}}};
  rule.target.outputs = {PatternRef::Node(3)};
  Condition splits;
  splits.kind = Condition::Kind::kSplitsDim;
  splits.left = IntExpr::Variable("d");
  splits.node = 0;
  splits.operand_axes = {IntExpr::Variable("i0"), std::nullopt};
  splits.output_axes = {IntExpr::Variable("j0")};
  rule.conditions = {splits};
  SetId(&rule);
  return rule;
}

Binding At(const Ints& x, const Ints& w, const Ints& stride, const Ints& padding, int64_t axis,
           int64_t degree) {
  Binding binding;
  binding.inputs = {SequentialType(x), SequentialType(w)};
  binding.variables = {{"d", degree}, {"i0", axis}, {"j0", axis}};
  binding.attributes = {
      {"stride", stride}, {"padding", padding}, {"dilation", Ints{1, 1}}, {"groups", int64_t{1}}};
  return binding;
}

TEST(SplitImage, DegreesDivideImageAndOutput) {
  const Rule rule = SplitImage();
  ASSERT_EQ(ValidateRule(rule), absl::OkStatus());
  const Ints w = {2, 2, 3, 3}, none = {0, 0, 0, 0}, one = {1, 1, 1, 1};
  EXPECT_TRUE(Admits(rule, At({1, 2, 6, 8}, w, {1, 1}, one, -2, 3)));
  EXPECT_FALSE(Admits(rule, At({1, 2, 6, 8}, w, {1, 1}, one, -2, 4)));
  // 9 rows become 7; 9 columns, with a stride, 4: no degree divides both.
  for (int64_t degree : {2, 3, 4, 7}) {
    EXPECT_FALSE(Admits(rule, At({1, 2, 9, 9}, w, {1, 2}, none, -2, degree)));
    EXPECT_FALSE(Admits(rule, At({1, 2, 9, 9}, w, {1, 2}, none, -1, degree)));
  }
  // 8 rows become 4.
  EXPECT_TRUE(Admits(rule, At({1, 2, 8, 9}, w, {2, 1}, one, -2, 4)));
  EXPECT_FALSE(Admits(rule, At({1, 2, 8, 9}, w, {2, 1}, one, -2, 8)));
  // The kernel's rows are no image.
  Binding crossed = At({1, 2, 8, 8}, w, {1, 1}, one, -2, 2);
  crossed.variables["j0"] = -1;
  EXPECT_FALSE(Admits(rule, crossed));
}

TEST(SplitImage, TasksWithTheirHalosMakeTheWhole) {
  const Rule rule = SplitImage();
  int checked = 0;
  for (const OperatorCall& call : RepresentativeCalls(OpKind::kConv2d)) {
    for (int64_t axis : {-4, -2, -1}) {
      for (int64_t degree : {2, 4}) {
        Binding binding = At(call.operands[0].Sizes(), call.operands[1].Sizes(),
                             call.op.Ints("stride"), call.op.Ints("padding"), axis, degree);
        binding.attributes["dilation"] = call.op.Ints("dilation");
        binding.attributes["groups"] = call.op.Int("groups");
        if (!Admits(rule, binding)) continue;
        EXPECT_EQ(CheckPieces(rule.target, binding, 3), absl::OkStatus());
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 12);
}

TEST(SplitImage, IsProvedFromTheTheoremOnPieces) {
  const ProofRecord proof = Prover().Prove(SplitImage());
  EXPECT_EQ(proof.verdict, ProofRecord::Verdict::kProved) << proof.note;
  EXPECT_NE(std::find(proof.lemmas.begin(), proof.lemmas.end(), "pieces_of_conv2d"),
            proof.lemmas.end());
}

}  // namespace
}  // namespace isomer
