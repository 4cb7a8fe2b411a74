#include "verifier/proving/prover.h"

#include <gtest/gtest.h>

#include "tests/verifier/rule_from_text.h"
#include "tests/verifier/true_rules.h"
#include "verifier/families/family_proof.h"

namespace isomer {
namespace {

std::string JoinedLemmas(const ProofRecord& record) {
  std::string text;
  for (const std::string& lemma : record.lemmas) text += lemma + " ";
  return text;
}

TEST(Prover, ProvesTrueRules) {
  Prover prover;
  for (const Rule& rule : TrueRules()) {
    const ProofRecord record = prover.Prove(rule);
    EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved)
        << rule.ToString() << "\n  " << record.note;
    EXPECT_FALSE(record.lemmas.empty()) << rule.ToString();
  }
}

TEST(Prover, RecordsLemmasAndSolver) {
  Prover prover;
  const ProofRecord record =
      prover.Prove(RuleFromText("matmul(add(x0, x1), x2) -> add(matmul(x0, x2), matmul(x1, x2))",
                                {{2, 2, 2}}, {SameType(0, 1)}));
  EXPECT_EQ(record.solver.substr(0, 3), "z3 ");
  const std::string lemmas = JoinedLemmas(record);
  EXPECT_NE(lemmas.find("matmul_is_linear_in_0 "), std::string::npos) << lemmas;
  EXPECT_NE(lemmas.find("sum_of_pieces_of_matmul_k "), std::string::npos) << lemmas;
  EXPECT_NE(lemmas.find("add_is_linear_in_0_1 "), std::string::npos) << lemmas;
}

TEST(Prover, VerdictDoesNotDependOnWhatWasProvedBefore) {
  Prover first, second;
  const std::vector<Rule> rules = TrueRules();
  for (const Rule& rule : rules) first.Prove(rule);
  for (size_t i = rules.size(); i-- > 0;) {
    EXPECT_EQ(first.Prove(rules[i]).lemmas, second.Prove(rules[i]).lemmas) << rules[i].ToString();
  }
}

TEST(Prover, ReversibleRuleMustHoldBothWays) {
  Rule rule = RuleFromText("combine(partition(x0; axis=-1, degree=d); axis=-1, degree=d) -> x0",
                           {{1}, {2}});
  Prover prover;
  EXPECT_EQ(prover.Prove(rule).verdict, ProofRecord::Verdict::kProved);
  rule.reversible = true;  // x0 need not be divisible.
  const Judgement judgement = prover.Judge(rule);
  EXPECT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
}

// Where both operands are broadcast along dims that are partitioned, copies are shared out among
// tasks, and what divides them replicated need not divide them before.
TEST(Prover, EveryOperatorThatBroadcastsIsTriedBroadcast) {
  Prover prover;
  for (const char* op : {"add", "maximum", "minimum", "pow", "equal", "less", "less_equal"}) {
    const std::string call = std::string(op) + "(x0, x1)";
    const std::string replicated =
        std::string(op) + "(replicate(x0; degree=d), replicate(x1; degree=d))";
    const Judgement judgement =
        prover.Judge(RuleFromText(replicated + " -> replicate(" + call + "; degree=d)", {{2, 2}}));
    EXPECT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted)
        << op << " " << judgement.record.note;
  }
}

TEST(Prover, SourceThatNeverTypeChecksIsNotProved) {
  Prover prover;
  const ProofRecord record =
      prover.Prove(RuleFromText("relu(concat(x0, x1; axis=-3)) -> x0", {{2, 2}}));
  EXPECT_EQ(record.verdict, ProofRecord::Verdict::kUnknown);
}

TEST(Prover, DataTypesOfSourceAndTargetMustAgree) {
  // A Transpose moves indices too; Scale does not take them.
  Prover prover;
  const Judgement judgement = prover.Judge(RuleFromText(
      "transpose(transpose(x0; swap=-2:-1); swap=-2:-1) -> scale(x0; factor=1)", {{2}}));
  EXPECT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
}

// op(x0, x1) -> combine(op(partition(x0; axis=i0, degree=d), replicate(x1; degree=d)); axis=j0, ..)
Rule ConvolutionFamily() {
  Rule rule = RuleFromText(
      "conv2d(x0, x1) -> combine(conv2d(partition(x0; axis=i, degree=d), replicate(x1; degree=d)); "
      "axis=j, degree=d)",
      {{4, 4}});
  for (const char* name : {"dilation", "groups", "padding", "stride"}) {
    rule.variables.push_back({name, VariableKind::kAttribute});
    rule.source.nodes[0].attributes.push_back({name, AttributeVariable{name}});
    rule.target.nodes[2].attributes.push_back({name, AttributeVariable{name}});
  }
  Condition splits;
  splits.kind = Condition::Kind::kSplitsDim;
  splits.left = IntExpr::Variable("d");
  splits.node = 0;
  splits.operand_axes = {IntExpr::Variable("i"), std::nullopt};
  splits.output_axes = {IntExpr::Variable("j")};
  rule.conditions = {splits};
  SetId(&rule);
  return rule;
}

TEST(Prover, FamilyOfAnyAttributesIsProved) {
  Prover prover;
  const ProofRecord record = prover.Prove(ConvolutionFamily());
  EXPECT_EQ(record.verdict, ProofRecord::Verdict::kProved) << record.note;
}

TEST(Prover, FamilyWithReduceInPlaceOfCombineIsRefused) {
  Rule rule = ConvolutionFamily();
  PatternNode& last = rule.target.nodes.back();
  last.kind = OpKind::kReduce;
  std::erase_if(last.attributes, [](const AttributePattern& a) { return a.name == "axis"; });
  SetId(&rule);
  Prover prover;
  const Judgement judgement = prover.Judge(rule);
  ASSERT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
  EXPECT_TRUE(Replay(rule, *judgement.counterexample).ok());
}

}  // namespace
}  // namespace isomer
