#include "optimizer/walk/mcmc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "optimizer/proposal/baselines.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// All combinations of choices, as an odometer.
Picoseconds ExhaustiveBest(TaskGraph* graph) {
  for (int n = 0; n < graph->num_nodes(); ++n) EXPECT_TRUE(graph->SetChoice(n, 0).ok());
  Picoseconds best = graph->makespan();
  for (int n = 0; n < graph->num_nodes();) {
    const int next = graph->choice(n) + 1;
    if (next == graph->num_choices(n)) {
      EXPECT_TRUE(graph->SetChoice(n++, 0).ok());
      continue;
    }
    EXPECT_TRUE(graph->SetChoice(n, next).ok());
    graph->Commit();
    best = std::min(best, graph->makespan());
    n = 0;
  }
  return best;
}

class Mcmc : public testing::Test {
 protected:
  void Load(Model model, int64_t devices) {
    model_ = std::move(model);
    rules_ = ExampleRules(model_.graph);
    index_.emplace(rules_);
    cost_.emplace(TestMachine(1, devices));
    tables_.emplace(*index_, *cost_, CostOptions{});
  }

  std::unique_ptr<TaskGraph> DataParallel() {
    auto mapped = MapBaseline(kDataParallel, model_.graph, &*tables_);
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    auto graph = TaskGraph::Create(model_, *mapped, &*tables_);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  Model model_;
  RuleSet rules_;
  std::optional<RuleIndex> index_;
  std::optional<CostModel> cost_;
  std::optional<CostTables> tables_;
};

TEST_F(Mcmc, FindsTheOptimumThatExhaustionFinds) {
  // Large weights and a small batch: data parallelism is not the answer.
  Load(TwoBranches(1, 4, 512), 2);
  const auto graph = DataParallel();
  McmcOptions options;
  options.beta = 30;
  options.proposals_per_node = 1000;
  const auto found = SearchByMcmc(options, graph.get());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_LT(found->best, found->initial);
  EXPECT_EQ(graph->makespan(), found->best);
  EXPECT_EQ(found->best, ExhaustiveBest(graph.get()));
}

TEST_F(Mcmc, ASeedDecidesEverything) {
  Load(ResidualModel(1, 4, 64, 128), 4);
  const auto first = SearchByMcmc({.seed = 5}, DataParallel().get());
  const auto second = SearchByMcmc({.seed = 5}, DataParallel().get());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->choices, second->choices);
  EXPECT_EQ(first->proposals, second->proposals);
}

TEST_F(Mcmc, StopsWhenTheSecondHalfBringsNothing) {
  Load(ResidualModel(1, 4, 64, 128), 2);
  const auto found = SearchByMcmc({}, DataParallel().get());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->stop, McmcResult::Stop::kNoImprovement);
  EXPECT_GE(found->proposals, 2 * found->best_at);
}

TEST_F(Mcmc, StopsWhenTheBudgetIsUsedUp) {
  Load(ResidualModel(1, 4, 64, 128), 2);
  const auto found = SearchByMcmc({.max_proposals = 7}, DataParallel().get());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->proposals, 7);
  EXPECT_EQ(found->stop, McmcResult::Stop::kBudget);
}

TEST_F(Mcmc, StopsOnceTheTargetIsReached) {
  Load(TwoBranches(1, 4, 512), 2);
  const auto all = SearchByMcmc({}, DataParallel().get());
  ASSERT_TRUE(all.ok());
  ASSERT_LT(all->best, all->initial);
  const auto found = SearchByMcmc({.target = all->initial - 1}, DataParallel().get());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->stop, McmcResult::Stop::kTarget);
  EXPECT_LT(found->best, all->initial);
  EXPECT_EQ(found->proposals, found->best_at);
}

TEST_F(Mcmc, OneDeviceLeavesNothingToChoose) {
  Load(ResidualModel(1, 4, 64, 128), 1);
  const auto found = SearchByMcmc({}, DataParallel().get());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->proposals, 0);
  EXPECT_EQ(found->best, found->initial);
}

}  // namespace
}  // namespace isomer
