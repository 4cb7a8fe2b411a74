#include "optimizer/proposal/walks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "optimizer/proposal/baselines.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/task_graph.h"
#include "optimizer/walk/guided_walk.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Refining : public testing::Test {
 protected:
  Refining()
      : model_(ResidualModel(3, 64, 512, 2048)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(TestMachine(1, 4)),
        tables_(index_, cost_, CostOptions{}) {}

  MappedModel Baseline(const char* name) {
    auto mapped = MapBaseline(name, model_.graph, &tables_);
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    return *std::move(mapped);
  }
  Picoseconds StepOf(const MappedModel& mapped) {
    return TaskGraph::Create(model_, mapped, &tables_).value()->makespan();
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
  MoveMemo moves_{cost_};
};

TEST_F(Refining, WalksBecomeFasterAndEndTheSameForASeed) {
  const MappedModel start = Baseline(kDataParallel);
  const auto walk = [&] {
    std::vector<Picoseconds> steps;
    const auto consider = [&](const MappedModel& mapped,
                              double without_buckets_us) -> absl::StatusOr<Prediction> {
      steps.push_back(StepOf(mapped));
      EXPECT_GT(without_buckets_us, 0);
      return Prediction{MicrosecondsOf(steps.back())};
    };
    EXPECT_EQ(ConsiderWalks(model_, start, MicrosecondsOf(StepOf(start)), 1, SearchPolicy(),
                            Deadline::In(0), nullptr, &tables_, &moves_, consider),
              absl::OkStatus());
    return steps;
  };
  const std::vector<Picoseconds> steps = walk();
  ASSERT_FALSE(steps.empty());
  EXPECT_LT(*std::min_element(steps.begin(), steps.end()), StepOf(start));
  EXPECT_EQ(steps, walk());  // Also with all moves known.
}

// Casts are not in a task graph; what a walk finds is simulated with them.
TEST_F(Refining, StepsOfBfloat16AreNearThoseOfThePlan) {
  CostTables tables(index_, cost_, {.precision = DataType::kBFloat16});
  const auto mapped = MapBaseline(kDataParallel, model_.graph, &tables);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const auto graph = TaskGraph::Create(model_, *mapped, &tables);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LT((*graph)->makespan(), StepOf(*mapped));
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const int node = static_cast<int>(random() % (*graph)->num_nodes());
    const int choice = static_cast<int>(random() % (*graph)->num_choices(node));
    ASSERT_EQ((*graph)->SetChoice(node, choice), absl::OkStatus());
    auto plan = DerivePlan(model_, (*graph)->Mapped(), /*training=*/true, &tables);
    if (!plan.ok()) continue;  // what no rule or view spreads so is no plan
    plan->precision = DataType::kBFloat16;
    plan->update.bucket_bytes = 0;
    const auto simulated = PredictPlan(cost_, &*plan);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    EXPECT_NEAR(MicrosecondsOf((*graph)->makespan()) / simulated->step_us, 1, 0.15);
  }
}

TEST_F(Refining, WalksImprovePlansOfBfloat16) {
  OptimizeOptions options;
  options.precision = DataType::kBFloat16;
  options.search.budget = 10;
  const auto all = Optimize(model_, index_, cost_, options);
  options.without = {"walks", "pairs"};
  const auto without = Optimize(model_, index_, cost_, options);
  ASSERT_TRUE(all.ok() && without.ok()) << all.status() << without.status();
  EXPECT_EQ(all->proposers.rows().count("walks"), 1u);
  EXPECT_LE(all->plan.predicted_step_us, without->plan.predicted_step_us);
}

TEST_F(Refining, PairsMakeAStepFasterInTheOrderThatFollowsFromThem) {
  const MappedModel start = Baseline(kDataParallel);
  const auto interleaved = [&](const MappedModel& mapped) {
    return TaskGraph::Create(model_, mapped, &tables_, nullptr, TaskGraph::Lists::kFixed,
                             TaskGraph::Order::kInterleaved)
        .value()
        ->makespan();
  };
  const auto paired = WithBetterPairs(model_, start, nullptr, Deadline::In(0), &tables_, &moves_);
  ASSERT_TRUE(paired.ok()) << paired.status();
  EXPECT_LT(paired->step, interleaved(start));
  EXPECT_EQ(paired->step, interleaved(paired->mapped));
  const auto again =
      WithBetterPairs(model_, paired->mapped, nullptr, Deadline::In(0), &tables_, &moves_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_LE(again->step, paired->step);
}

}  // namespace
}  // namespace isomer
