// Rules whose sides are equal where both are defined, and that evaluate a partial function where
// their source does not, are not proved; nor are rules that the reals make true and numbers do not.
#include "rules/theorems/domains.h"

#include <gtest/gtest.h>

#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/examples.h"
#include "tests/verifier/rule_from_text.h"
#include "verifier/proving/judge_rules.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

using Verdict = ProofRecord::Verdict;
const std::vector<std::vector<int>> kOneCall = {{2}}, kTwoCalls = {{2, 2}},
                                    kThreeCalls = {{2, 2, 2}};

struct Case {
  std::string text;
  std::vector<std::vector<int>> ranks;
  std::vector<Condition> conditions = {};
};

TEST(Domains, APartialFunctionOfWhatTheSourceDoesNotApplyItTo) {
  Prover prover;
  for (const Case& c : std::vector<Case>{
           {"log(embedding(x0, x1)) -> embedding(log(x0), x1)", kTwoCalls},
           {"sqrt(where(x0, x1, x2)) -> where(x0, sqrt(x1), sqrt(x2))", kThreeCalls},
           {"log(slice(x0; sizes=[1,1], starts=[0,0], steps=[1,1])) -> "
            "slice(log(x0); sizes=[1,1], starts=[0,0], steps=[1,1])",
            kOneCall},
           {"div(x0, div(x1, x2)) -> div(x2, div(x1, x0))", kThreeCalls, {NoPartials(0)}},
           {"mul(x0, div(x1, x2)) -> div(x0, div(x2, x1))", kThreeCalls, {NoPartials(1)}},
           {"exp(x0) -> add(exp(x0), scale(log(x0); factor=0.0))", kOneCall},
           {"x0 -> mul(x0, div(x0, x0))", kOneCall, {NoPartials(0)}},
           {"x0 -> add(x0, sub(log(x0), log(x0)))", kOneCall, {NoPartials(0)}},
           {"exp(x0) -> reciprocal(reciprocal(exp(add(x0, sub(sqrt(x0), sqrt(x0))))))", kOneCall},
       }) {
    const ProofRecord record = prover.Prove(RuleFromText(c.text, c.ranks, c.conditions));
    EXPECT_NE(record.verdict, Verdict::kProved) << c.text;
  }
}

TEST(Domains, TheSameWhereTheSourceIsDefinedAtMore) {
  Prover prover;
  for (const Case& c : std::vector<Case>{
           {"where(x0, sqrt(x1), sqrt(x2)) -> sqrt(where(x0, x1, x2))", kThreeCalls},
           {"div(x0, div(x1, x2)) -> div(mul(x0, x2), x1)", kThreeCalls, {NoPartials(2)}},
           {"div(div(x0, x1), x2) -> div(x0, mul(x1, x2))", kThreeCalls},
           {"div(x0, mul(x1, x2)) -> div(div(x0, x1), x2)", kThreeCalls},
           {"add(exp(x0), scale(log(x0); factor=0.0)) -> exp(x0)", kOneCall},
           {"reciprocal(exp(x0)) -> reciprocal(exp(x0))", kOneCall},
           {"log(concat(x0, x1; axis=-1)) -> concat(log(x0), log(x1); axis=-1)", kTwoCalls},
           {"concat(log(x0), log(x1); axis=-1) -> log(concat(x0, x1; axis=-1))",
            kTwoCalls,
            {SameType(0, 1)}},
       }) {
    const ProofRecord record = prover.Prove(RuleFromText(c.text, c.ranks, c.conditions));
    EXPECT_EQ(record.verdict, Verdict::kProved) << c.text << "\n" << record.note;
  }
}

TEST(Domains, AnUndefinedTargetIsRefutedByNumbers) {
  const Rule rule =
      RuleFromText("sqrt(where(x0, x1, x2)) -> where(x0, sqrt(x1), sqrt(x2))", {{1, 1, 1}});
  const Judgement judgement = Prover().Judge(rule);
  ASSERT_EQ(judgement.record.verdict, Verdict::kRefuted) << judgement.record.note;
  ASSERT_TRUE(judgement.counterexample.has_value());
  EXPECT_EQ(judgement.counterexample->kind, Counterexample::Kind::kUndefined);
  EXPECT_TRUE(Replay(rule, *judgement.counterexample).ok());
}

TEST(Domains, CastsAreNoIdentities) {
  Prover prover;
  for (const Case& c : std::vector<Case>{
           {"cast(cast(x0; to=4); to=0) -> cast(x0; to=0)", kOneCall},
           {"cast(add(x0, x1); to=4) -> add(cast(x0; to=4), cast(x1; to=4))",
            kTwoCalls,
            {SameType(0, 1)}},
           {"cast(maximum(x0, x1); to=1) -> maximum(cast(x0; to=1), cast(x1; to=1))",
            kTwoCalls,
            {SameType(0, 1)}},
       }) {
    EXPECT_NE(prover.Prove(RuleFromText(c.text, c.ranks, c.conditions)).verdict, Verdict::kProved)
        << c.text;
  }
}

TEST(Domains, WhatIsPromisedToBePositiveIs) {
  int promised = 0;
  for (const ExampleCall& example : Examples()) {
    const absl::StatusOr<Declaration> d = DeclarationOf(example);
    ASSERT_TRUE(d.ok()) << example.name;
    for (size_t s = 0; s < d->statements.size(); ++s) {
      if (!d->statements[s].positive) continue;
      ++promised;
      Declaration until = *d;
      until.statements.resize(s + 1);
      for (Statement& statement : until.statements) statement.output = -1;
      until.statements[s].output = 0;
      until.outputs = {d->StatementShape(d->statements[s])};
      std::vector<Array<double>> operands;
      for (size_t o = 0; o < example.operands.size(); ++o) {
        operands.emplace_back(example.operands[o].Sizes());
        for (size_t i = 0; i < operands[o].data.size(); ++i) {
          operands[o].data[i] = static_cast<double>((7 * i + 3 * o) % 11) - 5;
        }
      }
      std::vector<const Array<double>*> pointers;
      for (const Array<double>& operand : operands) pointers.push_back(&operand);
      const auto values = Evaluate<double>(until, FullBox(until), pointers);
      ASSERT_TRUE(values.ok()) << example.name << values.status();
      for (double value : (*values)[0].data) EXPECT_GT(value, 0) << example.name;
    }
  }
  EXPECT_GE(promised, 4);
}

TEST(Domains, OperatorsThatMayBePartial) {
  for (OpKind kind :
       {OpKind::kDiv, OpKind::kLog, OpKind::kSqrt, OpKind::kPow, OpKind::kReciprocal,
        OpKind::kBatchNorm, OpKind::kLayerNorm, OpKind::kTop2Gating, OpKind::kTopKRouting}) {
    EXPECT_TRUE(MayBePartial(kind)) << OpName(kind);
  }
  for (OpKind kind :
       {OpKind::kAdd, OpKind::kMatMul, OpKind::kSoftmax, OpKind::kLogSoftmax, OpKind::kAttention,
        OpKind::kAvgPool, OpKind::kAdaptiveAvgPool, OpKind::kReduceMean, OpKind::kSoftplus,
        OpKind::kGelu, OpKind::kCrossEntropy, OpKind::kDropout, OpKind::kEmbeddingBag,
        OpKind::kSinkAttention, OpKind::kGatherSum}) {
    EXPECT_FALSE(MayBePartial(kind)) << OpName(kind);
  }
}

// What ended the program, or did not end, is a verdict; the others' are there.
TEST(Domains, HostileRulesDoNotHideTheVerdictsOfOthers) {
  const std::vector<Rule> rules = {
      RuleFromText("transpose(transpose(x0; perm=[1,0]); perm=[1,0]) -> x0", {{2}}),
      RuleFromText("one_hot(x0; axis=-1, depth=1000000000) -> one_hot(x0; axis=-1, depth=3)",
                   {{1}}),
      RuleFromText("add(x0, x1) -> add(x1, x0)", kTwoCalls),
  };
  JudgeOptions options;
  options.jobs = 2;
  const auto judged = JudgeRules(rules, options);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_EQ(judged->records[0].verdict, Verdict::kProved) << judged->records[0].note;
  EXPECT_NE(judged->records[1].verdict, Verdict::kProved);
  EXPECT_NE(judged->records[1].verdict, Verdict::kCrashed) << judged->records[1].note;
  EXPECT_EQ(judged->records[2].verdict, Verdict::kProved);
}

}  // namespace
}  // namespace isomer
