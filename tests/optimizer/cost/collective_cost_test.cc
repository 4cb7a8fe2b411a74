#include "optimizer/cost/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduceScatter,
                               Collective::kAllGather, Collective::kAllToAll,
                               Collective::kBroadcast, Collective::kReduce};

// `devices` a node at 100 bytes/us each, nodes at 10 bytes/us.
Machine Simple(int64_t devices, int64_t nodes, double latency_us = 0) {
  Machine machine;
  machine.levels = {{"node", devices, 100, latency_us}, {"cluster", nodes, 10, latency_us}};
  return machine;
}

Machine Preset(const std::string& name, int64_t nodes = 0) {
  auto machine = LoadMachine(name, nodes);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

std::vector<int32_t> Range(int32_t count, int32_t first = 0, int32_t stride = 1) {
  std::vector<int32_t> devices(count);
  for (int32_t i = 0; i < count; ++i) devices[i] = first + i * stride;
  return devices;
}

TEST(CollectiveCost, RingsWithinANode) {
  const CollectiveCost cost(Simple(4, 2));
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllGather, 400, Range(4)), 3);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kReduceScatter, 400, Range(4)), 3);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllReduce, 400, Range(4)), 6);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllToAll, 400, Range(4)), 3);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kBroadcast, 400, Range(4)), 4);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kReduce, 400, Range(4)), 4);
}

TEST(CollectiveCost, OneDeviceCostsNothing) {
  const CollectiveCost cost(Simple(4, 2, 1));
  for (Collective kind : kAll) {
    EXPECT_EQ(cost.Us(kind, 1 << 20, Range(1)), 0);
    EXPECT_EQ(cost.Us(kind, 1 << 20, absl::Span<const int32_t>()), 0);
  }
}

TEST(CollectiveCost, AGroupGetsItsShareOfANodesLink) {
  const CollectiveCost cost(Simple(4, 2));
  // All eight: half of the buffer crosses each node's link of 10. A pair has a quarter of it.
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllGather, 400, Range(8)), 20);
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllGather, 400, Range(2, 0, 4)), 80);
  // Of each member's 400 bytes, half leave the node: 4 x 200 over 10.
  EXPECT_DOUBLE_EQ(cost.Us(Collective::kAllToAll, 400, Range(8)), 80);
}

TEST(CollectiveCost, UnitsOfASharedLevelDivideItsLink) {
  Machine machine = Simple(2, 2);
  const double apart = CollectiveCost(machine).Us(Collective::kAllReduce, 400, Range(4));
  machine.levels[1].shared = true;
  // Both nodes send over one link.
  EXPECT_DOUBLE_EQ(CollectiveCost(machine).Us(Collective::kAllReduce, 400, Range(4)), 2 * apart);
}

TEST(CollectiveCost, InnerLinksOnTheWayAreTheBottleneckWhereTheyAreSlower) {
  Machine machine = Simple(2, 2);
  machine.levels[1].bytes_per_us = 1000;
  const double beside = CollectiveCost(machine).Us(Collective::kAllGather, 400, Range(2, 0, 2));
  EXPECT_DOUBLE_EQ(beside, 200 / 500.);
  machine.levels[0].through = true;
  EXPECT_DOUBLE_EQ(CollectiveCost(machine).Us(Collective::kAllGather, 400, Range(2, 0, 2)),
                   200 / 100.);
}

TEST(CollectiveCost, LevelAfterLevelBeatsAFlatRingAcrossSlowLinks) {
  const CollectiveCost cost(Simple(8, 8));
  const CollectiveLine line = cost.Choice(Collective::kAllReduce, 1 << 20, Range(64));
  EXPECT_STRNE(line.algorithm, "ring");
  // Two nodes: a flat ring would send 2 * 15/16 of the buffer over each node's link.
  EXPECT_LT(cost.Us(Collective::kAllReduce, 1 << 20, Range(16)), 1.2 * (1 << 20) / 10);
}

TEST(CollectiveCost, TreesAreForShortMessagesAndRingsForLongOnes) {
  const CollectiveCost cost(Simple(32, 1, 5));
  EXPECT_STREQ(cost.Choice(Collective::kAllReduce, 8, Range(32)).algorithm, "tree");
  EXPECT_STREQ(cost.Choice(Collective::kAllReduce, 1 << 20, Range(32)).algorithm, "ring");
}

TEST(CollectiveCost, NcclTakesItsQuickProtocolForShortMessages) {
  const CollectiveCost cost(Preset("dgx_a100"));
  EXPECT_STREQ(cost.Choice(Collective::kAllReduce, 1024, Range(8)).protocol, "LL");
  EXPECT_STREQ(cost.Choice(Collective::kAllReduce, 8 << 20, Range(8)).protocol, "LL128");
  EXPECT_STREQ(cost.Choice(Collective::kAllReduce, 1 << 30, Range(8)).protocol, "Simple");
}

// Bus bandwidth: 2 (n-1)/n bytes / time, in GB/s.
double BusBandwidth(const CollectiveCost& cost, int64_t bytes, int32_t n) {
  return 2. * (n - 1) / n * static_cast<double>(bytes) /
         cost.Us(Collective::kAllReduce, bytes, Range(n)) / 1e3;
}

TEST(CollectiveCost, PublishedBusBandwidthsOfEightH200) {
  const CollectiveCost cost(Preset("dgx_h200"));
  const std::pair<int64_t, double> published[] = {{1, 75}, {16, 256}, {64, 369}, {1024, 466}};
  for (const auto& [mib, gb_per_s] : published) {
    EXPECT_NEAR(BusBandwidth(cost, mib << 20, 8) / gb_per_s, 1, 0.15) << mib << " MiB";
  }
  EXPECT_NEAR(cost.Us(Collective::kAllReduce, 32 << 10, Range(8)), 18, 2.7);
}

TEST(CollectiveCost, WithoutReducingSwitchesBandwidthIsThatOfRings) {
  // 8 x A100: 230 to 240 GB/s are seen at large sizes.
  EXPECT_NEAR(BusBandwidth(CollectiveCost(Preset("dgx_a100")), int64_t{1} << 30, 8), 237, 10);
}

class OnPreset : public testing::TestWithParam<std::string> {
 protected:
  const Machine machine_ = Preset(GetParam(), 4);
  const CollectiveCost cost_{machine_};
};

TEST_P(OnPreset, CostsGrowWithBytesFromLatencyToBandwidth) {
  const auto all = Range(static_cast<int32_t>(machine_.num_devices()));
  for (Collective kind : kAll) {
    double last = 0;
    for (int64_t bytes = 1; bytes < int64_t{1} << 40; bytes *= 4) {
      const double us = cost_.Us(kind, bytes, all);
      EXPECT_GT(us, last) << TraitsOf(kind).name << " " << bytes;
      last = us;
    }
    // Large: time is proportional to bytes. Small: it is the latency.
    const int64_t huge = int64_t{1} << 44;
    EXPECT_NEAR(cost_.Us(kind, 2 * huge, all) / cost_.Us(kind, huge, all), 2, 1e-3);
    EXPECT_NEAR(cost_.Us(kind, 8, all) / cost_.Us(kind, 4, all), 1, 1e-3);
  }
}

TEST_P(OnPreset, GroupsOfOneShapeCostTheSameToTheBit) {
  const auto node = static_cast<int32_t>(machine_.devices_per_node());
  for (Collective kind : kAll) {
    const double us = cost_.Us(kind, 12345, Range(node));
    EXPECT_EQ(us, cost_.Us(kind, 12345, Range(node, node)));
    std::vector<int32_t> reversed = Range(node);
    std::reverse(reversed.begin(), reversed.end());
    EXPECT_EQ(us, cost_.Us(kind, 12345, reversed));
    // One device of every node.
    EXPECT_EQ(cost_.Us(kind, 999, Range(4, 0, node)), cost_.Us(kind, 999, Range(4, 1, node)));
  }
}

// All bytes pass each link of NCCL's only algorithm from or to one device: sharing them out takes
// no longer, whatever the group. The search does not ask for owners of weights on many devices.
TEST_P(OnPreset, NcclSharesOutInTheTimeThatOneDeviceTakes) {
  if (!machine_.nccl) return;
  const auto node = static_cast<int32_t>(machine_.devices_per_node());
  for (const std::vector<int32_t>& group :
       {Range(node), Range(4 * node), Range(4, 0, node), Range(2 * node, 0, 2)}) {
    EXPECT_STREQ(cost_.Choice(Collective::kBroadcast, 4, group).algorithm, "ring");
    for (int64_t bytes = 4; bytes < int64_t{1} << 34; bytes *= 4) {
      EXPECT_LE(cost_.Us(Collective::kReduceScatter, bytes, group),
                cost_.Us(Collective::kReduce, bytes, group));
      EXPECT_LE(cost_.Us(Collective::kAllGather, bytes, group),
                cost_.Us(Collective::kBroadcast, bytes, group));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, OnPreset, testing::ValuesIn(MachinePresets()),
                         [](const auto& info) { return info.param; });

TEST(CollectiveCost, K80PairsPreferTheirOwnSwitch) {
  const CollectiveCost cost(Preset("k80_cluster"));
  for (Collective kind : kAll) {
    const double switched = cost.Us(kind, 1 << 20, std::vector<int32_t>{0, 1});
    const double over_host = cost.Us(kind, 1 << 20, std::vector<int32_t>{0, 2});
    const double over_network = cost.Us(kind, 1 << 20, std::vector<int32_t>{0, 4});
    EXPECT_LT(1.5 * switched, over_host) << TraitsOf(kind).name;
    EXPECT_LT(over_host, over_network) << TraitsOf(kind).name;
  }
}

TEST(GroupShape, CountsUnitsAndMembersPerLevel) {
  const Machine machine = Preset("summit", 4);  // sockets of 3, nodes of 2
  const GroupShape shape = ShapeOf(machine, std::vector<int32_t>{0, 1, 3, 4, 6, 7, 9, 10});
  EXPECT_EQ(shape.size, 8);
  ASSERT_EQ(shape.levels.size(), 3u);
  EXPECT_EQ(shape.levels[0], (GroupShape::AtLevel{2, 1}));
  EXPECT_EQ(shape.levels[1], (GroupShape::AtLevel{2, 2}));
  EXPECT_EQ(shape.levels[2], (GroupShape::AtLevel{2, 4}));
  // The uneven count by their fullest unit and their emptiest.
  const GroupShape uneven = ShapeOf(machine, std::vector<int32_t>{0, 1, 2, 3});
  EXPECT_EQ(uneven.levels[0], (GroupShape::AtLevel{3, 1}));
  EXPECT_EQ(uneven.levels[1], (GroupShape::AtLevel{2, 1}));
}

TEST(CollectiveCost, SixteenThousandDevices) {
  const CollectiveCost cost(Preset("dgx_h100", 2048));
  const auto all = Range(16384);
  const double us = cost.Us(Collective::kAllReduce, 1 << 30, all);
  EXPECT_GT(us, cost.Us(Collective::kAllReduce, 1 << 30, Range(8)));
  EXPECT_LT(us, 20000);
}

}  // namespace
}  // namespace isomer
