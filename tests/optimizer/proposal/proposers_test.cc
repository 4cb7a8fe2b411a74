#include "optimizer/proposal/proposers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using testing::HasSubstr;

TEST(Proposers, AreKnownByTheirNames) {
  std::set<std::string> names;
  for (const Proposer* proposer : AllProposers()) {
    EXPECT_TRUE(names.insert(proposer->name).second) << proposer->name;
    EXPECT_EQ(ParseProposer(proposer->name).value(), proposer);
    EXPECT_THAT(ProposerList(), HasSubstr(proposer->description));
  }
  for (const std::string name : {kDataParallel, kZero3, kMegatron, kPublished, kGrid}) {
    EXPECT_TRUE(ParseProposer(name).ok()) << name;
  }
  EXPECT_THAT(std::string(ParseProposer("walk").status().message()),
              HasSubstr("no proposer 'walk'; there are data_parallel, "));
}

TEST(ProposerLedger, GainsAddUpToWhatTheStepLost) {
  ProposerLedger ledger;
  ledger.CountBest("grids", std::nullopt, 200);  // the first that fits gains nothing
  ledger.CountBest("grids", 200, 100);
  ledger.CountBest("walks", 100, 90);
  ledger.CountBest("grids", 90, 45);
  ledger.CountBest(std::nullopt, 45, 40);
  EXPECT_DOUBLE_EQ(ledger.rows().at("grids").gain, 0.75);
  EXPECT_EQ(ledger.rows().at("grids").best, 3);
  EXPECT_NEAR(ledger.rows().at("walks").gain, 0.1, 1e-12);
  EXPECT_EQ(ledger.rows().size(), 2u);
  ProposerLedger part;
  {
    const Proposing proposing(&part, "spread_calls");
    part.CountPlan(part.current());
    part.CountBest(part.current(), 2, 1);
  }
  EXPECT_FALSE(part.current().has_value());
  ledger.AddPartOf(part);
  EXPECT_EQ(ledger.rows().at("spread_calls").plans, 1);
  EXPECT_EQ(ledger.rows().at("spread_calls").gain, 0);
  const std::string text = LedgerText(ledger, {"pairs"});
  EXPECT_THAT(text, testing::ContainsRegex("grids +0 +3 +75.0%"));
  EXPECT_THAT(text, testing::ContainsRegex("pairs +switched off"));
}

class ProposersTest : public testing::Test {
 protected:
  OptimizeResult Run(const OptimizeOptions& options) {
    absl::StatusOr<OptimizeResult> result = Optimize(model_, index_, cost_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  const Model model_ = ResidualModel(1, 64, 128, 256);
  const RuleSet rules_ = ExampleRules(model_.graph);
  const RuleIndex index_{rules_};
  const CostModel cost_{TestMachine(2, 4)};
};

TEST_F(ProposersTest, ThePlanIsOfWhoProposesWhenItIsEntered) {
  CostTables tables(index_, cost_, {});
  const MappedModel mapped = MapBaseline(kDataParallel, model_.graph, &tables).value();
  Plan plan = DerivePlan(model_, mapped, /*training=*/true, &tables).value();
  Contest contest(cost_);
  int first = 0;
  {
    const Proposing proposing(&contest.ledger(), "grids");
    first = contest.Enter(plan, "grid");
    const Proposing inner(&contest.ledger(), "spread_calls");
    contest.Enter(plan, "the same again");
  }
  plan.update.bucket_bytes = 1 << 30;
  contest.Enter(plan, "nobody's");
  ASSERT_TRUE(contest.PredictionOf(first).ok());
  const auto& rows = contest.ledger().rows();
  EXPECT_EQ(rows.at("grids").plans, 1);
  EXPECT_EQ(rows.at("grids").best, 1);
  EXPECT_EQ(rows.at("spread_calls").plans, 0);
}

// Whoever is switched off proposes nothing; there is a plan all the same.
TEST_F(ProposersTest, EachCanBeSwitchedOff) {
  OptimizeOptions options;
  options.choose_buckets = options.choose_update_method = true;
  options.search.budget = 10;
  const OptimizeResult all = Run(options);
  EXPECT_GT(all.proposers.rows().size(), 6u);
  double plans = 0;
  for (const auto& [proposer, row] : all.proposers.rows()) plans += row.plans;
  EXPECT_GT(plans, 10);
  for (const Proposer* proposer : AllProposers()) {
    SCOPED_TRACE(proposer->name);
    options.without = {proposer->name};
    const OptimizeResult result = Run(options);
    EXPECT_EQ(result.proposers.rows().count(proposer->name), 0u);
    ExpectPlanHolds(result.plan, rules_);
  }
}

TEST_F(ProposersTest, BaselinesAloneAreAPlan) {
  OptimizeOptions options;
  for (const Proposer* proposer : AllProposers()) {
    if (std::string(proposer->name) != kDataParallel) options.without.insert(proposer->name);
  }
  const OptimizeResult result = Run(options);
  EXPECT_EQ(result.origin, kDataParallel);
  EXPECT_EQ(result.proposers.rows().size(), 1u);
}

}  // namespace
}  // namespace isomer
