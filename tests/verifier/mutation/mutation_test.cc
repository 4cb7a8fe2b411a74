// A sample of the mutants: all that change a meaning are refused. All of them: isomer-verify
// mutate.
#include "verifier/mutation/mutation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "pcg/support/data_path.h"
#include "tests/verifier/rule_from_text.h"
#include "tests/verifier/true_rules.h"
#include "verifier/mutation/known_answers.h"
#include "verifier/mutation/mutants.h"
#include "verifier/mutation/pattern_changes.h"
#include "verifier/mutation/plan_changes.h"

namespace isomer {
namespace {

using Outcome = MutantVerdict::Outcome;

const RuleSet& ShippedRules() {
  static const RuleSet* rules = [] {
    absl::StatusOr<RuleSet> loaded = LoadRules(DataPath("rules/default.rules"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new RuleSet(loaded.ok() ? *std::move(loaded) : RuleSet());
  }();
  return *rules;
}

TEST(Mutation, SampleOfEveryKindIsCaughtOrEqual) {
  MutationOptions options;
  options.limit = 60;
  options.rule_mutants = 24;
  const absl::StatusOr<std::vector<Mutant>> mutants = AllMutants(ShippedRules(), options);
  ASSERT_TRUE(mutants.ok()) << mutants.status();
  const absl::StatusOr<std::vector<MutantVerdict>> verdicts = JudgeMutants(*mutants, 1);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  std::map<MutantKind, int> caught;
  for (size_t i = 0; i < mutants->size(); ++i) {
    const MutantVerdict& verdict = (*verdicts)[i];
    EXPECT_NE(verdict.outcome, Outcome::kMissed)
        << (*mutants)[i].subject << ": " << (*mutants)[i].change << ": " << verdict.reason << ": "
        << verdict.details;
    EXPECT_FALSE(verdict.reason.empty());
    caught[(*mutants)[i].kind] += verdict.outcome == Outcome::kCaught;
  }
  EXPECT_EQ(caught.size(), static_cast<size_t>(kMutantKinds));
  for (const auto& [kind, count] : caught) EXPECT_GT(count, 10) << MutantKindName(kind);
  EXPECT_TRUE(NothingIsMissed(*verdicts));
}

// An attacker changes what was changed before: a plan that has lost a view, all its steps, ..
TEST(PlanChanges, OfAChangedPlanCanBeMade) {
  const absl::StatusOr<Graph> graph = ParseGraph(R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = matmul(%0, %1) : f32[4,4]
%3 = relu(%2) : f32[4,4]
output "y" = %3
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<const Rule*> rules;
  for (const Rule& rule : ShippedRules().rules) rules.push_back(&rule);
  const Certified base = DeriveCertified({"net", *graph, {}, ""}, rules, 1);
  int made = 0;
  for (const PlanChange& first : ChangesOf(base)) {
    if (first.what.find("by rule") != std::string::npos) continue;
    Certified changed = base;
    first.change(&changed.plan);
    for (const PlanChange& second : ChangesOf(changed)) {
      if (second.what.find("by rule") != std::string::npos) continue;
      Plan plan = changed.plan;
      second.change(&plan);
      ++made;
    }
  }
  EXPECT_GT(made, 100);
}

TEST(Mutation, SameSeedGivesTheSameMutants) {
  const std::vector<Mutant> a = RuleMutants(ShippedRules().rules, 50, 7);
  const std::vector<Mutant> b = RuleMutants(ShippedRules().rules, 50, 7);
  const std::vector<Mutant> other = RuleMutants(ShippedRules().rules, 50, 8);
  ASSERT_EQ(a.size(), 50u);
  std::set<std::string> subjects, others;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].subject, b[i].subject);
    EXPECT_TRUE(subjects.insert(a[i].subject).second) << "the same mutant twice";
    others.insert(other[i].subject);
  }
  EXPECT_NE(subjects, others);
}

// What ships must stay what it is; an example call that is new needs a line
// (isomer-verify mutate --record_answers=verifier/mutation/known_answers.txt).
TEST(KnownAnswers, EveryDeclarationStillComputesThem) {
  const auto known = LoadKnownAnswers();
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->size(), Examples().size());
  for (const ExampleCall& call : Examples()) {
    const absl::StatusOr<Declaration> d = DeclarationOf(call);
    ASSERT_TRUE(d.ok()) << call.name;
    const absl::StatusOr<std::string> answer = AnswerOf(call, *d);
    ASSERT_TRUE(answer.ok()) << call.name << answer.status();
    const auto at = known->find(call.name);
    ASSERT_TRUE(at != known->end()) << call.name;
    EXPECT_EQ(*answer, at->second) << call.name;
  }
}

// `salt` of the mask on each side.
Rule DropoutRule(int64_t source_salt, int64_t target_salt) {
  Rule rule = RuleFromText("relu(x0) -> relu(x1)", {{2, 0}});
  for (auto [side, salt] : {std::pair(&rule.source, source_salt), {&rule.target, target_salt}}) {
    side->nodes[0].kind = OpKind::kDropout;
    side->nodes[0].inputs = {PatternRef::Input(0), PatternRef::Input(1)};
    side->nodes[0].attributes = {{"rate", NumberExpr{0.5, {}}}, {"salt", IntExpr::Constant(salt)}};
  }
  SetId(&rule);
  return rule;
}

// The bugs that parallel frameworks had.
TEST(MutationOfClassicBugs, AreRefuted) {
  const std::vector<std::vector<int>> one = {{2}}, two = {{2, 2}}, products = {{2, 2}};
  const std::vector<std::pair<std::string, Rule>> bugs = {
      {"Reduce commuted with Relu",
       RuleFromText("relu(reduce(x0; degree=d)) -> reduce(relu(x0); degree=d)", one)},
      {"bias added once per shard",
       RuleFromText("add(reduce(matmul(x0, x1); degree=d), x2) -> "
                    "reduce(add(matmul(x0, x1), replicate(x2; degree=d)); degree=d)",
                    {{2, 2, 1}})},
      {"Concat on a sharded axis",
       RuleFromText("concat(x0, x1; axis=-1) -> combine(concat(partition(x0; axis=-1, degree=d), "
                    "partition(x1; axis=-1, degree=d); axis=-1); axis=-1, degree=d)",
                    two, {SameType(0, 1), Divides("d", 0, -1)})},
      {"maximum on partial sums",
       RuleFromText("reduce_max(reduce(x0; degree=d); axes=[-1], keepdims=1) -> "
                    "reduce(reduce_max(x0; axes=[-1], keepdims=1); degree=d)",
                    one)},
      {"dropout with different masks", DropoutRule(0, 1)},
      {"Replicate forgotten",
       RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), x1); "
                    "axis=-2, degree=d)",
                    products, {Divides("d", 0, -2)})},
  };
  Prover prover;
  for (const auto& [name, rule] : bugs) {
    EXPECT_EQ(JudgeMutant(rule, &prover).outcome, Outcome::kCaught) << name;
  }
}

TEST(MutationOfClassicBugs, OfSchedulesAreAmongTheMutants) {
  const absl::StatusOr<std::vector<Mutant>> mutants = ScheduleMutants(1);
  ASSERT_TRUE(mutants.ok()) << mutants.status();
  Prover prover;
  for (const std::string bug :
       {"over the wrong group", "averaged over the devices once more", "as all_gather",
        "without device", "left out", "done twice", "gradient of shard"}) {
    int tried = 0;
    for (const Mutant& mutant : *mutants) {
      if (mutant.change.find(bug) == std::string::npos) continue;
      ++tried;
      EXPECT_NE(mutant.judge(&prover).outcome, Outcome::kMissed)
          << mutant.subject << ": " << mutant.change;
    }
    EXPECT_GT(tried, 0) << bug;
  }
}

TEST(MutationOfPrograms, NothingIsMissedAndEveryKindIsTried) {
  const absl::StatusOr<std::vector<Mutant>> mutants = ProgramMutants(1);
  ASSERT_TRUE(mutants.ok()) << mutants.status();
  Prover prover;
  for (const std::string kind : {"wait for", "deleted", "for the one before it", "signal",
                                 "moved up by its size", "left out", "exchanged", "moved down"}) {
    int caught = 0;
    for (const Mutant& mutant : *mutants) {
      if (mutant.change.find(kind) == std::string::npos) continue;
      const MutantVerdict verdict = mutant.judge(&prover);
      EXPECT_NE(verdict.outcome, Outcome::kMissed)
          << mutant.subject << ": " << mutant.change << ": " << verdict.reason;
      caught += verdict.outcome == Outcome::kCaught;
    }
    EXPECT_GT(caught, 0) << kind;
  }
}

TEST(Mutation, TrueRulesAreNotCaught) {
  Prover prover;
  for (const Rule& rule : TrueRules()) {
    const MutantVerdict verdict = JudgeMutant(rule, &prover);
    EXPECT_EQ(verdict.outcome, Outcome::kEqual) << rule.ToString() << ": " << verdict.reason;
  }
}

// Each change is one that the rest of the program can read.
TEST(PatternChanges, AreWellFormedAndDifferent) {
  size_t found = 0;
  for (const Rule& rule : TrueRules()) {
    std::set<std::string> ids = {rule.id};
    for (const ChangedRule& change : ChangesOf(rule)) {
      EXPECT_TRUE(ValidateRule(change.rule).ok()) << change.change;
      EXPECT_TRUE(ids.insert(change.rule.id).second) << rule.ToString() << ": " << change.change;
    }
    found += ids.size() - 1;
  }
  EXPECT_GT(found, 200u);
}

}  // namespace
}  // namespace isomer
