// Verdicts of a prover: repaired, kept, and the same for any number of processes.
#include "generator/pipeline/prove_rules.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "generator/pipeline/step_records.h"
#include "generator/pipeline/steps.h"
#include "generator/schemas/expansion.h"
#include "generator/workers/local_workers.h"

namespace isomer {
namespace {

std::vector<GeneralRule> SomeRules() {
  TypeOracle oracle;
  Random random(1);
  Statistics statistics;
  return FindExpansions(OpKind::kMatMul, &oracle, &random, &statistics);
}

Judge Says(ProofRecord::Verdict said) {
  return [said](const Rule&) {
    Verdict verdict;
    verdict.record.verdict = said;
    return verdict;
  };
}

// The rules as `make_judge` says, by so many workers.
absl::StatusOr<std::vector<Rule>> Proved(const std::vector<GeneralRule>& rules,
                                         const std::function<Judge()>& make_judge, int jobs,
                                         Memo* memo) {
  const StepKeys keys(1);
  const auto workers = MakeLocalWorkers(jobs, GeneratorSteps(make_judge));
  if (!workers.ok()) return workers.status();
  WorkQueue queue(workers->get(), memo);
  Proofs proofs(&queue, &keys);
  for (const GeneralRule& rule : rules) proofs.Begin(rule);
  return proofs.Take(nullptr);
}

TEST(ProveRules, InOrderForAnyNumberOfProcesses) {
  const std::vector<GeneralRule> rules = SomeRules();
  ASSERT_GT(rules.size(), 3u);
  Memo memo;
  for (int jobs : {1, 3}) {
    const auto judged = Proved(
        rules, [] { return Says(ProofRecord::Verdict::kProved); }, jobs, &memo);
    ASSERT_TRUE(judged.ok()) << judged.status();
    ASSERT_EQ(judged->size(), rules.size());
    for (size_t i = 0; i < rules.size(); ++i) EXPECT_EQ((*judged)[i].id, rules[i].rule.id);
  }
}

TEST(ProveRules, WhatWasExpectedIsProvedOnceAndInOrder) {
  const std::vector<GeneralRule> rules = SomeRules();
  int judged = 0;
  OwnWorker worker(GeneratorSteps([&judged]() -> Judge {
    return [&judged](const Rule& rule) {
      ++judged;
      return Says(ProofRecord::Verdict::kProved)(rule);
    };
  }));
  Memo memo;
  const StepKeys keys(1);
  WorkQueue queue(&worker, &memo);
  Proofs proofs(&queue, &keys);
  // All are expected, from the last on, and all but the first come.
  for (size_t i = rules.size(); i-- > 0;) proofs.Expect(rules[i]);
  for (size_t i = 1; i < rules.size(); ++i) proofs.Begin(rules[i]);
  const auto proved = proofs.Take(nullptr);
  ASSERT_TRUE(proved.ok()) << proved.status();
  ASSERT_EQ(proved->size(), rules.size() - 1);
  for (size_t i = 1; i < rules.size(); ++i) EXPECT_EQ((*proved)[i - 1].id, rules[i].rule.id);
  EXPECT_LE(judged, static_cast<int>(rules.size()));
}

TEST(ProveRules, AProverThatDiesAgainAndAgainIsAnError) {
  Memo memo;
  const auto judged = Proved(
      SomeRules(), []() -> Judge { return [](const Rule&) -> Verdict { _exit(3); }; }, 2, &memo);
  EXPECT_EQ(judged.status().message(), "a worker died 5 times at an item of prove (it exited)");
}

TEST(ProveRules, WhatIsUnknownIsAskedAgain) {
  const std::string folder = testing::TempDir() + "/prove_rules_memo";
  std::filesystem::remove_all(folder);
  const std::vector<GeneralRule> rules = SomeRules();
  auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok()) << memo.status();
  for (ProofRecord::Verdict said :
       {ProofRecord::Verdict::kUnknown, ProofRecord::Verdict::kProved}) {
    const auto judged = Proved(
        rules, [said] { return Says(said); }, 1, memo->get());
    ASSERT_TRUE(judged.ok()) << judged.status();
    EXPECT_EQ(judged->front().proof.verdict, said);
  }
  // What is proved stays so.
  const auto judged = Proved(
      rules, [] { return Says(ProofRecord::Verdict::kUnknown); }, 1, memo->get());
  ASSERT_TRUE(judged.ok());
  EXPECT_EQ(judged->front().proof.verdict, ProofRecord::Verdict::kProved);
}

TEST(StepRecords, ComeBackAsTheyWere) {
  const std::vector<GeneralRule> rules = SomeRules();
  Families families{rules, {}};
  families.statistics.graphs_enumerated = 7;
  families.statistics.Prune("reason", "text");
  const std::string bytes = Encode(families);
  const absl::StatusOr<Families> again = DecodeFamilies(bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Encode(*again), bytes);
  ASSERT_EQ(again->rules.size(), rules.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(again->rules[i].rule.Digest(), rules[i].rule.Digest());
    EXPECT_EQ(again->rules[i].found.inputs, rules[i].found.inputs);
    EXPECT_EQ(again->rules[i].found.attributes, rules[i].found.attributes);
  }
  EXPECT_EQ(again->statistics.pruned_examples, families.statistics.pruned_examples);
  EXPECT_FALSE(DecodeFamilies(bytes.substr(1)).ok());
}

TEST(MeaningDigest, DiffersBetweenOperatorsAndDoesNotChange) {
  EXPECT_EQ(MeaningDigest(OpKind::kRelu), MeaningDigest(OpKind::kRelu));
  EXPECT_NE(MeaningDigest(OpKind::kAdd), MeaningDigest(OpKind::kMul));
}

}  // namespace
}  // namespace isomer
