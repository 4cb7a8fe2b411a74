#include "optimizer/segments.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "optimizer/contest.h"
#include "optimizer/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Of blocks x + f(x) the sums are borders: nothing else is alone in between.
TEST(Segments, BordersAreWhatEverythingLaterComesFrom) {
  const Model model = ResidualModel(3, 8, 16, 32);
  const std::vector<NodeId> between = NodesBetweenBorders(model.graph, 5);
  int sums = 0;
  for (int i = 0; i < model.graph.num_nodes(); ++i) {
    const bool is_between = std::count(between.begin(), between.end(), NodeId{i}) > 0;
    if (model.graph.node(i).op.kind() != OpKind::kAdd) continue;
    ++sums;
    EXPECT_FALSE(is_between) << model.graph.Label(NodeId{i});
  }
  EXPECT_GT(sums, 1);
  EXPECT_FALSE(between.empty());
  EXPECT_GT(NodesBetweenBorders(model.graph, 1000).size(), between.size());
}

TEST(Segments, KeepingBordersAloneTakesLessMemory) {
  const Model model = ResidualModel(8, 4096, 64, 256);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 2));
  OptimizeOptions options;
  options.plan = kDataParallel;
  auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  Plan plan = result->plan;
  plan.recomputed = NodesBetweenBorders(plan.graph, 6);
  Contest contest(cost);
  const auto smaller = contest.Consider(plan, "test");
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_LT(smaller->peak_bytes, 0.7 * static_cast<double>(result->plan.predicted_peak_bytes));
  EXPECT_GT(smaller->step_us, result->plan.predicted_step_us);
  ExpectPlanHolds(contest.best().plan, rules);
}

}  // namespace
}  // namespace isomer
