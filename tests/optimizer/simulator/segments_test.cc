#include "optimizer/simulator/segments.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "optimizer/proposal/contest.h"
#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/plan_holds.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

std::vector<NodeId> AllOf(const Graph& graph, const std::vector<NodeResults>& results) {
  return LevelsOfRecomputation(SegmentsToRecompute(graph, results), 1).back();
}

// Of blocks x + f(x) the sums are borders: nothing else is alone in between.
TEST(Segments, BordersAreWhatEverythingLaterComesFrom) {
  const Model model = ResidualModel(8, 8, 16, 32);
  const std::vector<NodeResults> results(model.graph.num_nodes(), {64, 64, 1.0});
  const std::vector<NodeId> between = AllOf(model.graph, results);
  int sums = 0;
  for (int i = 0; i < model.graph.num_nodes(); ++i) {
    const bool is_between = std::count(between.begin(), between.end(), NodeId{i}) > 0;
    if (model.graph.node(i).op.kind() == OpKind::kAdd && !is_between) ++sums;
    EXPECT_FALSE(is_between && IsLeaf(model.graph.node(i).op.kind())) << i;
  }
  EXPECT_GT(sums, 1);
  EXPECT_FALSE(between.empty());
}

// The chain x -> relu -> .. of 16 results of 100 bytes, but one of 10 in the middle.
TEST(Segments, BordersAreWhereLittleIsKept) {
  Graph graph;
  TensorRef x = graph.AddInput("x", SequentialType({4, 4}));
  std::vector<NodeResults> results = {{}};
  for (int i = 0; i < 16; ++i) {
    auto next = graph.AddOp(OpKind::kRelu, {x});
    ASSERT_TRUE(next.ok()) << next.status();
    x = *next;
    const int64_t bytes = i == 8 ? 10 : 100;
    results.push_back({bytes, bytes, 1});
  }
  graph.AddOutput("y", x);
  const std::vector<NodeId> between = AllOf(graph, results);
  EXPECT_EQ(std::count(between.begin(), between.end(), NodeId{9}), 0);
  EXPECT_GT(between.size(), 8u);
}

TEST(Segments, LevelsGrowFromWhatFreesMostForItsTime) {
  const std::vector<Segment> segments = {
      {{NodeId{3}}, 100, 1}, {{NodeId{1}, NodeId{2}}, 100, 2}, {{NodeId{7}}, 100, 50}};
  const auto levels = LevelsOfRecomputation(segments, 8);
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[0], std::vector<NodeId>{NodeId{3}});
  EXPECT_EQ(levels[1], (std::vector<NodeId>{NodeId{1}, NodeId{2}, NodeId{3}}));
  EXPECT_EQ(LevelsOfRecomputation(segments, 1).size(), 1u);
  EXPECT_TRUE(LevelsOfRecomputation({}, 8).empty());
}

// Two stages of a pipeline, the second with twice as many calls.
TEST(Segments, LevelsTakeTheSameShareOfEachDevice) {
  std::vector<Segment> segments;
  for (int id = 0; id < 12; ++id) segments.push_back({{NodeId{id}}, 100, 1, id < 4 ? 0 : 8});
  const auto levels = LevelsOfRecomputation(segments, 4);
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[0], (std::vector<NodeId>{{0}, {4}, {5}}));
  EXPECT_EQ(levels[1], (std::vector<NodeId>{{0}, {1}, {4}, {5}, {6}, {7}}));
  EXPECT_EQ(levels[3].size(), 12u);
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
  const auto results = ResultsOfNodes(cost, plan);
  ASSERT_TRUE(results.ok()) << results.status();
  plan.recomputed = AllOf(plan.graph, *results);
  Contest contest(cost);
  const auto smaller = contest.Consider(plan, "test");
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_LT(smaller->peak_bytes, 0.7 * static_cast<double>(result->plan.predicted_peak_bytes));
  EXPECT_GT(smaller->step_us, result->plan.predicted_step_us);
  ExpectPlanHolds(contest.best().plan, rules);
}

}  // namespace
}  // namespace isomer
