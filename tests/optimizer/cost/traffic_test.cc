#include "optimizer/cost/traffic.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "optimizer/search/optimizer.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"

namespace isomer {
namespace {

Machine K80Node(int64_t nodes = 1) {
  auto machine = LoadMachine("k80_cluster", nodes);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

Task CollectiveTask(TaskKind kind, std::vector<int32_t> devices, int64_t bytes) {
  Task task{kind, Phase::kForward, NodeId{0}};
  task.devices = std::move(devices);
  task.bytes = bytes;
  return task;
}

// Bytes by the names of links.
std::map<std::string, double> Named(const Machine& machine, const Traffic& traffic) {
  std::map<std::string, double> named;
  for (const auto& [link, bytes] : traffic) named[machine.LinkName(link)] += bytes;
  return named;
}

TEST(Traffic, AnAllReduceOverEqualLinksGoesRound) {
  Machine machine;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 1, 100, 0}};
  Traffic traffic;
  AddTraffic(CostModel(machine), {}, CollectiveTask(TaskKind::kAllReduce, {0, 1, 2, 3}, 400),
             &traffic);
  // 2 * 3/4 of the bytes from each to the next.
  EXPECT_EQ(traffic.size(), 8u);
  for (const auto& [link, bytes] : traffic) EXPECT_DOUBLE_EQ(bytes, 600) << machine.LinkName(link);
}

TEST(Messages, OfARingGoFromEachToTheNext) {
  Machine machine;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 1, 100, 0}};
  std::map<int64_t, int64_t> to;
  ForEachMessage(CostModel(machine), {}, CollectiveTask(TaskKind::kAllReduce, {0, 1, 2, 3}, 400),
                 [&](const Message& message) {
                   EXPECT_DOUBLE_EQ(message.bytes, 600);
                   to[message.from] = message.to;
                 });
  EXPECT_EQ(to, (std::map<int64_t, int64_t>{{0, 1}, {1, 2}, {2, 3}, {3, 0}}));
}

TEST(Traffic, AnAllReduceOverPairsSparesTheirBus) {
  const CostModel cost(K80Node());
  Traffic traffic;
  AddTraffic(cost, {}, CollectiveTask(TaskKind::kAllReduce, {0, 1, 2, 3}, 400), &traffic);
  const auto named = Named(cost.machine(), traffic);
  // Within a pair, each sends 2 * 1/2 of the bytes; then half of that to its like in the other.
  EXPECT_DOUBLE_EQ(named.at("device 0 up"), 600);
  EXPECT_DOUBLE_EQ(named.at("device 3 down"), 600);
  EXPECT_DOUBLE_EQ(named.at("bus of node 0"), 800);
  EXPECT_EQ(named.size(), 9u);
}

TEST(Traffic, APairKeepsToItsSwitch) {
  const CostModel cost(K80Node());
  for (TaskKind kind : {TaskKind::kAllReduce, TaskKind::kReduceScatter, TaskKind::kAllGather,
                        TaskKind::kAllToAll}) {
    Traffic traffic;
    AddTraffic(cost, {}, CollectiveTask(kind, {2, 3}, 400), &traffic);
    const auto named = Named(cost.machine(), traffic);
    EXPECT_EQ(named.size(), 4u) << TaskKindName(kind);
    EXPECT_EQ(named.count("bus of node 0"), 0u) << TaskKindName(kind);
  }
}

TEST(Traffic, ComputeSendsNothing) {
  Traffic traffic;
  AddTraffic(CostModel(K80Node()), {}, CollectiveTask(TaskKind::kCompute, {0}, 400), &traffic);
  EXPECT_TRUE(traffic.empty());
}

// Bytes of messages within pairs, and of those between.
std::pair<double, double> PairsAndBetween(const Machine& machine, const Traffic& traffic) {
  double sent = 0, between = 0;
  for (const auto& [name, bytes] : Named(machine, traffic)) {
    if (name.rfind("device", 0) == 0 && name.find(" up") != std::string::npos) sent += bytes;
    if (name == "bus of node 0") between += bytes;
  }
  return {sent - between, between};
}

struct Shape {
  const char* name;
  int64_t batch, hidden, inner;
};

class OnOneK80Node : public testing::TestWithParam<Shape> {};

TEST_P(OnOneK80Node, MostBytesGoOverTheSwitchesOfPairs) {
  const Shape& shape = GetParam();
  const Model model = ResidualModel(2, shape.batch, shape.hidden, shape.inner);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(K80Node());
  OptimizeOptions options;
  options.choose_buckets = true;
  const auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto lowered = LowerPlan(result->plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto [pairs, between] = PairsAndBetween(cost.machine(), TrafficOf(cost, lowered->schedule));
  EXPECT_GT(pairs, between) << shape.name;
  EXPECT_GT(pairs + between, 0) << "one device does everything";
}

// Sizes that are twice an odd number split in two only: then each call has an axis within pairs and
// one between them, or idles.
INSTANTIATE_TEST_SUITE_P(Shapes, OnOneK80Node,
                         testing::Values(Shape{"FourWaySmallBatch", 64, 2048, 2048},
                                         Shape{"FourWayLargeBatch", 4096, 1024, 1024},
                                         Shape{"TwoWaySmallBatch", 62, 2046, 2046},
                                         Shape{"TwoWayWide", 254, 1022, 8190},
                                         Shape{"TwoWayBalanced", 1022, 1022, 1022},
                                         Shape{"TwoWayLargeBatch", 4094, 1022, 2046}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
