// Every mutant of a true rule is refuted, by a counterexample that runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "pcg/ir/plan.h"
#include "tests/verifier/true_rules.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

TEST(Mutants, AreRefutedByCounterexamplesThatRun) {
  Prover prover;
  const std::vector<MutatedRule> mutants = Mutants();
  EXPECT_GE(mutants.size(), 30u);
  std::set<std::string> ids;
  for (const MutatedRule& mutant : mutants) {
    SCOPED_TRACE(mutant.change + ": " + mutant.rule.ToString());
    EXPECT_TRUE(ids.insert(mutant.rule.id).second) << "the same mutant twice";
    const Judgement judgement = prover.Judge(mutant.rule);
    EXPECT_EQ(judgement.record.verdict, ProofRecord::Verdict::kRefuted) << judgement.record.note;
    if (!judgement.counterexample) continue;
    EXPECT_EQ(judgement.record.note, judgement.counterexample->Summary());
    const absl::Status differs = Replay(mutant.rule, *judgement.counterexample);
    EXPECT_TRUE(differs.ok()) << differs;
  }
}

TEST(Mutants, CounterexampleIsSavedAsModels) {
  const MutatedRule mutant = Mutants()[24];  // operands exchanged
  Prover prover;
  const Judgement judgement = prover.Judge(mutant.rule);
  ASSERT_TRUE(judgement.counterexample.has_value());
  const std::string stem = testing::TempDir() + "/counterexample";
  ASSERT_TRUE(SaveCounterexample(stem, mutant.rule, *judgement.counterexample).ok());
  for (const char* side : {".source.txt", ".target.txt"}) {
    const absl::StatusOr<Model> model = LoadModel(stem + side);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->weights.size(), 2u);
  }
  EXPECT_TRUE(std::filesystem::exists(stem + ".txt"));
}

TEST(Mutants, ReplayRefusesACounterexampleThatIsNone) {
  const Rule rule = TrueRules()[0];
  Counterexample none;
  none.binding.inputs = {SequentialType({4})};
  none.binding.variables = {{"a", -1}, {"d", 2}};
  none.inputs = {{{1, 2, 3, 4}}};
  EXPECT_FALSE(Replay(rule, none).ok());
}

}  // namespace
}  // namespace isomer
