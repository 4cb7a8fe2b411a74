// Family rules at work: what the generator finds of an operator matches, applies, is replayed, and
// gives equal graphs.
#include <gtest/gtest.h>

#include <set>

#include "generator/schemas/expansion.h"
#include "rules/matching/rewrite.h"
#include "verifier/families/family_calls.h"
#include "verifier/plans/plan_checker.h"
#include "verifier/proving/prover.h"
#include "verifier/refutation/counterexample.h"

namespace isomer {
namespace {

class Families : public testing::TestWithParam<OpKind> {
 protected:
  std::vector<GeneralRule> Find() {
    TypeOracle oracle;
    Random random(1);
    Statistics statistics;
    return FindExpansions(GetParam(), &oracle, &random, &statistics);
  }
};

const Condition* SplitOf(const Rule& rule) {
  return !rule.conditions.empty() && rule.conditions[0].kind == Condition::Kind::kSplitsDim
             ? &rule.conditions[0]
             : nullptr;
}

// The graphs that one application of the rule makes of `source`; each is replayed by the checker.
std::set<uint64_t> Applied(const Rule& rule, const Graph& source) {
  Binding given;
  given.variables["d"] = 2;
  std::set<uint64_t> made;
  for (const DerivationStep& step : FindMatches(source, rule, given)) {
    Graph applied = source, replayed = source;
    EXPECT_EQ(ApplyStep(rule, step, &applied), absl::OkStatus());
    DerivationStep recorded = step;
    EXPECT_EQ(ReplayStep(rule, recorded, &replayed), absl::OkStatus());
    EXPECT_EQ(applied.StructuralHash(), replayed.StructuralHash());
    made.insert(applied.StructuralHash());
  }
  return made;
}

TEST_P(Families, MatchApplyAndReplayWhereTheyAdmit) {
  for (const GeneralRule& general : Find()) {
    const Rule& rule = general.rule;
    SCOPED_TRACE(rule.ToString());
    ASSERT_EQ(ValidateRule(rule), absl::OkStatus());
    const std::optional<FamilySide> side = SideOf(rule, rule.source);
    ASSERT_TRUE(side.has_value());
    int tried = 0;
    for (const Binding& binding : TrialBindings(rule, *side, SplitOf(rule), general.found)) {
      const auto difference = TryBinding(rule, binding, 7);
      if (!difference.ok()) continue;
      EXPECT_FALSE(difference->has_value()) << (*difference)->Summary();
      const absl::StatusOr<Graph> source = InstantiatePattern(rule.source, binding),
                                  target = InstantiatePattern(rule.target, binding);
      ASSERT_TRUE(source.ok() && target.ok());
      EXPECT_TRUE(Applied(rule, *source).contains(target->StructuralHash()));
      ++tried;
    }
    EXPECT_GT(tried, 0);
  }
}

TEST_P(Families, AreProvedAndDiffer) {
  Prover prover;
  std::set<uint64_t> digests;
  for (const GeneralRule& general : Find()) {
    EXPECT_TRUE(digests.insert(general.rule.Digest()).second);
    EXPECT_EQ(prover.Prove(general.rule).verdict, ProofRecord::Verdict::kProved)
        << general.rule.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Families,
                         testing::Values(OpKind::kMatMul, OpKind::kAdd, OpKind::kRelu,
                                         OpKind::kConv2d, OpKind::kEmbedding, OpKind::kSplit,
                                         OpKind::kLayerNorm, OpKind::kReduceSum,
                                         OpKind::kMeanSquaredError, OpKind::kTranspose),
                         [](const auto& kind) { return std::string(OpName(kind.param)); });

}  // namespace
}  // namespace isomer
