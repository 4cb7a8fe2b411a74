// Rules between an operator of any attributes and Concat, Split, Add or elementwise operators: true
// ones are proved, or checked and marked so; false ones are refuted.
#include "verifier/proving/algebra_proof.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/prover.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

using Ranks = std::vector<std::vector<int>>;

// The attributes `names` of all calls of `kind` as variables.
Rule WithAttributes(Rule rule, OpKind kind, const std::vector<std::string>& names) {
  for (Pattern* side : {&rule.source, &rule.target}) {
    for (PatternNode& node : side->nodes) {
      if (node.kind != kind) continue;
      for (const std::string& name : names) {
        node.attributes.push_back({name, AttributeVariable{name}});
      }
      std::sort(node.attributes.begin(), node.attributes.end(),
                [](const auto& a, const auto& b) { return a.name < b.name; });
    }
  }
  for (const std::string& name : names) rule.variables.push_back({name, VariableKind::kAttribute});
  SetId(&rule);
  return rule;
}

Rule Conv(const std::string& text, Ranks ranks, std::vector<Condition> conditions = {}) {
  return WithAttributes(RuleFromText(text, std::move(ranks), std::move(conditions)),
                        OpKind::kConv2d, {"dilation", "groups", "padding", "stride"});
}

// Node `node` of the source has a dim that leads these axes; "" leads none.
Condition Splits(int node, const std::vector<std::string>& operands,
                 const std::vector<std::string>& outputs) {
  Condition condition{
      .kind = Condition::Kind::kSplitsDim, .left = IntExpr::Constant(1), .node = node};
  auto axes = [](const std::vector<std::string>& names) {
    std::vector<std::optional<IntExpr>> result;
    for (const std::string& name : names) {
      result.push_back(name.empty() ? std::nullopt : std::optional(IntExpr::Variable(name)));
    }
    return result;
  };
  condition.operand_axes = axes(operands);
  condition.output_axes = axes(outputs);
  return condition;
}

ProofRecord Prove(const Rule& rule) { return Prover().Prove(rule); }

// Where theorems on the structure of declarations show it.
Rule OnlyByStructure(Rule rule) {
  rule.conditions.push_back(ByStructure());
  SetId(&rule);
  return rule;
}

void ExpectRefuted(const Rule& rule) {
  SCOPED_TRACE(rule.ToString());
  const Judgement judgement = Prover().Judge(rule);
  EXPECT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
  ASSERT_TRUE(judgement.counterexample.has_value());
  EXPECT_TRUE(Replay(rule, *judgement.counterexample).ok());
}

void ExpectProved(const Rule& rule) {
  SCOPED_TRACE(rule.ToString());
  const ProofRecord record = Prove(rule);
  EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << record.note;
}

TEST(AlgebraProof, OfDeclarationsWithSymbolicSizesIsComplete) {
  const std::string softmax =
      "softmax(concat(x0, x1; axis=i); axis=a) -> "
      "concat(softmax(x0; axis=a), softmax(x1; axis=a); axis=i)";
  ExpectProved(RuleFromText(softmax, {{2, 2}, {3, 3}}, {Splits(1, {"i"}, {"i"})}));
  ExpectProved(RuleFromText("atan(concat(x0, x1; axis=i)) -> concat(atan(x0), atan(x1); axis=i)",
                            {{1, 1}, {3, 3}}));
}

TEST(AlgebraProof, OfAttributeVariablesFollowsFromTheStructureOfDeclarations) {
  ExpectProved(
      OnlyByStructure(Conv("conv2d(concat(x0, x1; axis=-4), x2) -> "
                           "concat(conv2d(x0, x2), conv2d(x1, x2); axis=-4)",
                           {{4, 4, 4}})));
  ExpectProved(
      OnlyByStructure(Conv("conv2d(x0, concat(x1, x2; axis=i)) -> "
                           "concat(conv2d(x0, x1), conv2d(x0, x2); axis=j)",
                           {{4, 4, 4}}, {Splits(1, {"", "i"}, {"j"})})));
}

TEST(AlgebraProof, OfAttributeVariablesIsCheckedOnlyWithoutTheConditionThatTheoremsSpeakOfIt) {
  const ProofRecord record =
      Prove(Conv("conv2d(concat(x0, x1; axis=-4), x2) -> "
                 "concat(conv2d(x0, x2), conv2d(x1, x2); axis=-4)",
                 {{4, 4, 4}}));
  EXPECT_EQ(record.verdict, ProofRecord::Verdict::kChecked);
}

TEST(AlgebraProof, TheConditionMakesFalseRulesTrueWhereTheyAre) {
  // Scattered products are linear in nothing: the theorem leaves sums, and sets.
  const Rule scaled =
      WithAttributes(RuleFromText("scale(scatter_elements(x0, x1, x2); factor=f) -> "
                                  "scatter_elements(scale(x0; factor=f), x1, scale(x2; factor=f))",
                                  {{2, 2, 2}}),
                     OpKind::kScatterElements, {"axis", "reduction"});
  ExpectRefuted(scaled);
  ExpectProved(OnlyByStructure(scaled));
  Binding binding;
  binding.inputs.assign(3, SequentialType({2, 2}, DataType::kFloat32));
  binding.inputs[1].dtype = DataType::kInt64;
  binding.numbers["f"] = 1.5;
  for (int64_t reduction : {0, 1, 2}) {
    binding.attributes = {{"axis", int64_t{0}}, {"reduction", reduction}};
    EXPECT_EQ(Admits(OnlyByStructure(scaled), binding), reduction < 2) << reduction;
  }
}

TEST(AlgebraProof, RefutesPiecesOfADimThatIsNeededAsAWhole) {
  ExpectRefuted(
      RuleFromText("softmax(concat(x0, x1; axis=i); axis=a) -> "
                   "concat(softmax(x0; axis=a), softmax(x1; axis=a); axis=i)",
                   {{2, 2}}));
  ExpectRefuted(WithAttributes(RuleFromText("cumsum(concat(x0, x1; axis=-1)) -> "
                                            "concat(cumsum(x0), cumsum(x1); axis=-1)",
                                            {{2, 2}}),
                               OpKind::kCumSum, {"axis", "exclusive", "reverse"}));
}

TEST(AlgebraProof, RefutesTheMeanOfPiecesAsTheirSum) {
  ExpectRefuted(WithAttributes(RuleFromText("reduce_mean(concat(x0, x1; axis=-1)) -> "
                                            "add(reduce_mean(x0), reduce_mean(x1))",
                                            {{2, 2}}, {SameType(0, 1)}),
                               OpKind::kReduceMean, {"axes", "keepdims"}));
}

TEST(AlgebraProof, RefutesPiecesOfAnImageWithoutTheirHalos) {
  ExpectRefuted(
      Conv("conv2d(concat(x0, x1; axis=-2), x2) -> "
           "concat(conv2d(x0, x2), conv2d(x1, x2); axis=-2)",
           {{4, 4, 4}}));
}

TEST(AlgebraProof, RefutesOutputChannelsOfGroups) {
  ExpectRefuted(
      Conv("conv2d(x0, concat(x1, x2; axis=-4)) -> "
           "concat(conv2d(x0, x1), conv2d(x0, x2); axis=-3)",
           {{4, 4, 4}}));
}

TEST(AlgebraProof, RefutesWhatDependsOnCoordinates) {
  Rule rule = RuleFromText(
      "dropout(concat(x0, x1; axis=-2), x2) -> "
      "concat(dropout(x0, x2), dropout(x1, x2); axis=-2)",
      {{2, 2, 0}});
  ExpectRefuted(WithAttributes(rule, OpKind::kDropout, {"rate", "salt"}));
}

TEST(AlgebraProof, RefutesTheMergeOfKernelsOfTwoSizes) {
  const std::string merge =
      "conv2d(x0, x1) | conv2d(x0, x2) -> "
      "split(conv2d(x0, concat(x1, x2; axis=-4)); axis=-3, sizes=[size(x1,-4),size(x2,-4)]).0 | "
      "split(conv2d(x0, concat(x1, x2; axis=-4)); axis=-3, sizes=[size(x1,-4),size(x2,-4)]).1";
  ExpectRefuted(Conv(merge, {{4, 4, 4}}, {Unpartitioned(1, -4), Unpartitioned(2, -4)}));
}

TEST(AlgebraProof, RefutesKernelsOfTwoSizesThatMakeImagesOfOneSize) {
  // With a stride of 2, kernels of 2 and of 3 elements may.
  const Rule rule = RuleFromText(
      "concat(conv1d(x0, x1), conv1d(x0, x2); axis=j) -> conv1d(x0, concat(x1, x2; axis=i))",
      {{3, 3, 3}}, {Splits(0, {"", "i"}, {"j"})});
  ExpectRefuted(WithAttributes(rule, OpKind::kConv1d, {"dilation", "groups", "padding", "stride"}));
}

TEST(AlgebraProof, RefutesPartsThatDoNotMeet) {
  const std::string add =
      "add(concat(x0, x1; axis=i), concat(x2, x3; axis=i)) -> "
      "concat(add(x0, x2), add(x1, x3); axis=i)";
  ExpectRefuted(RuleFromText(add, {{2, 2, 2, 2}}));
}

TEST(AlgebraProof, RefutesPartsInAnotherOrder) {
  ExpectRefuted(
      Conv("split(conv2d(x0, x1); axis=-4, sizes=[s,t]).0 | "
           "split(conv2d(x0, x1); axis=-4, sizes=[s,t]).1 -> "
           "conv2d(split(x0; axis=-4, sizes=[s,t]).1, x1) | "
           "conv2d(split(x0; axis=-4, sizes=[s,t]).0, x1)",
           {{4, 4}}));
}

TEST(AlgebraProof, RefutesLinearityInAnOperandThatIsDividedBy) {
  Rule rule = RuleFromText(
      "layer_norm(add(x0, x1), x2, x3) -> "
      "add(layer_norm(x0, x2, x3), layer_norm(x1, x2, x3))",
      {{2, 2, 1, 1}}, {SameType(0, 1)});
  ExpectRefuted(WithAttributes(rule, OpKind::kLayerNorm, {"epsilon"}));
}

TEST(AlgebraProof, RefutesPaddingBeforeAFunctionThatDoesNotKeepZero) {
  const std::vector<std::string> attributes = {"mode", "padding", "value"};
  ExpectRefuted(WithAttributes(RuleFromText("exp(pad(x0)) -> pad(exp(x0))", {{2}, {3}}),
                               OpKind::kPad, attributes));
}

TEST(AlgebraProof, SaysSoWhereNoRepresentativeCallIsOfTheRule) {
  const FamilyProof proof =
      ProveAlgebra(RuleFromText("matmul(x0, x1) -> matmul(x1, x0)", {{1, 1}}));
  EXPECT_EQ(proof.verdict, SmtVerdict::kUnknown);
  EXPECT_FALSE(proof.why.empty());
}

TEST(RepresentativeBindings, OfARuleThatUsesMorePartsThanAnyCallHasAreNone) {
  const Rule rule = WithAttributes(
      RuleFromText("relu(split(x0; axis=-1).7) -> split(relu(x0); axis=-1).7", {{2}}),
      OpKind::kSplit, {"sizes"});
  EXPECT_TRUE(RepresentativeBindings(rule).empty());
}

TEST(RepresentativeBindings, AreAdmittedAndCutUnevenly) {
  const Rule rule =
      Conv("conv2d(concat(x0, x1; axis=-4), x2) -> concat(conv2d(x0, x2), conv2d(x1, x2); axis=-4)",
           {{4, 4, 4}});
  bool uneven = false;
  for (const Binding& binding : RepresentativeBindings(rule)) {
    EXPECT_TRUE(Admits(rule, binding));
    for (const Binding& near : BindingsNear(rule, binding)) {
      EXPECT_TRUE(Admits(rule, near));
      uneven |= near.inputs[0].dims[0].size != near.inputs[1].dims[0].size;
    }
  }
  EXPECT_TRUE(uneven);
}

// Inputs that no call of the convolution has: those of the BatchNorm after it.
TEST(AlgebraProof, ABatchNormIsFoldedIntoAConvolution) {
  const auto folded = [](const std::string& shift, const std::string& kernel_shift) {
    return Conv(
        "batch_norm(conv2d(x0, x1), x2, x3, x4, x5; epsilon=e) -> "
        "add(conv2d(x0, transpose(batch_norm(transpose(x1; swap=-4:-3), x2, " +
            kernel_shift + ", scale(x4; factor=0.0), x5; epsilon=e); swap=-4:-3)), " +
            "batch_norm(transpose(reduce_sum(scale(x1; factor=0.0); axes=[-3,-2,-1], keepdims=1); "
            "swap=-4:-3), x2, " +
            shift + ", x4, x5; epsilon=e))",
        {{4, 4, 1, 1, 1, 1}}, {NoPartials(3)});
  };
  ExpectProved(OnlyByStructure(folded("x3", "scale(x3; factor=0.0)")));
  ExpectRefuted(folded("x3", "x3"));  // The shift is counted for each place of the kernel.
  ExpectRefuted(folded("x4", "scale(x3; factor=0.0)"));
  Rule partials = folded("x3", "scale(x3; factor=0.0)");
  partials.conditions.clear();
  SetId(&partials);
  EXPECT_NE(Prove(partials).verdict, ProofRecord::Verdict::kProved);
}

TEST(DataTypes, OfTenInputsAreDecidedWithoutTryingAll) {
  const std::string text =
      "batch_norm(concat(x0, x1; axis=-3), concat(x2, x3; axis=-1), concat(x4, x5; axis=-1), "
      "concat(x6, x7; axis=-1), concat(x8, x9; axis=-1)) -> "
      "concat(batch_norm(x0, x2, x4, x6, x8), batch_norm(x1, x3, x5, x7, x9); axis=-3)";
  std::string why;
  EXPECT_TRUE(DataTypesAgree(RuleFromText(text, {{4, 4, 1, 1, 1, 1, 1, 1, 1, 1}}), &why)) << why;
}

TEST(DataTypes, AnInputThatTheTargetTakesAndTheSourceDoesNotShareDiffers) {
  const Rule merge = RuleFromText(
      "embedding(x0, x1) | embedding(x0, x2) -> "
      "split(embedding(x0, concat(x1, x2; axis=-1)); axis=-2, sizes=[size(x1,-1),size(x2,-1)]).0 | "
      "split(embedding(x0, concat(x1, x2; axis=-1)); axis=-2, sizes=[size(x1,-1),size(x2,-1)]).1",
      {{2, 1, 1}});
  std::string why;
  EXPECT_FALSE(DataTypesAgree(merge, &why));  // Indices of 32 and of 64 bits have no Concat.
}

}  // namespace
}  // namespace isomer
