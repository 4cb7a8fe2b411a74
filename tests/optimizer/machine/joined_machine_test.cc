#include "optimizer/machine/joined_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "optimizer/cost/collective_cost.h"
#include "optimizer/machine/machine.h"

namespace isomer {
namespace {

using testing::HasSubstr;

constexpr char kTwoAndTwo[] = "dgx_h100:2+dgx_a100:2";

Link LinkNamed(const Machine& machine, const std::string& name) {
  for (LinkId id = 0; id < machine.num_links(); ++id) {
    if (machine.LinkName(id) == name) return machine.link(id);
  }
  ADD_FAILURE() << "no link " << name;
  return {};
}

TEST(JoinedMachine, EachNodeHasItsDevicesAndLinks) {
  const auto machine = LoadMachine(kTwoAndTwo);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->name, kTwoAndTwo);
  EXPECT_EQ(machine->num_devices(), 32);
  EXPECT_EQ(machine->kind(15).name, "H100-SXM5-80GB");
  EXPECT_EQ(machine->kind(16).name, "A100-SXM4-80GB");
  EXPECT_EQ(machine->devices_alike(), 16);
  EXPECT_NEAR(LinkNamed(*machine, "device 0 up").bytes_per_us, 450e3, 1);
  EXPECT_NEAR(LinkNamed(*machine, "device 16 down").bytes_per_us, 300e3, 1);
  EXPECT_NEAR(LinkNamed(*machine, "node 1 up").bytes_per_us, 400e3, 1);
  EXPECT_NEAR(LinkNamed(*machine, "node 2 down").bytes_per_us, 200e3, 1);
}

// In a node a collective takes as long as in a cluster of such nodes; the slowest links pace the
// others.
TEST(JoinedMachine, CollectivesAreAsFastAsTheLinksOfTheirDevices) {
  const CollectiveCost joined(LoadMachine(kTwoAndTwo).value());
  const CollectiveCost h100(LoadMachine("dgx_h100", 4).value());
  const CollectiveCost a100(LoadMachine("dgx_a100", 4).value());
  const auto devices = [](int32_t first, int32_t count) {
    std::vector<int32_t> list(count);
    std::iota(list.begin(), list.end(), first);
    return list;
  };
  constexpr int64_t kBytes = 64 << 20;
  for (Collective kind : {Collective::kAllReduce, Collective::kAllGather, Collective::kAllToAll}) {
    const auto us = [&](const CollectiveCost& cost, int32_t first, int32_t count) {
      return cost.Us(kind, kBytes, devices(first, count));
    };
    // NCCL's calls wait for the slower kind's launch.
    EXPECT_NEAR(us(joined, 0, 8), us(h100, 0, 8), 2);
    EXPECT_NEAR(us(joined, 0, 16), us(h100, 0, 16), 2);
    EXPECT_NEAR(us(joined, 16, 8), us(a100, 0, 8), 1e-6);
    EXPECT_NEAR(us(joined, 8, 16), us(a100, 0, 16), 1e-6);
    EXPECT_GT(us(joined, 8, 16), 1.1 * us(joined, 0, 16));
  }
}

TEST(JoinedMachine, BadTextsAreRefusedInOneLine) {
  struct Case {
    const char* spec;
    int64_t nodes, devices_per_node;
    const char* message;
  };
  for (const Case& c : {
           Case{"dgx_h100:2+dgx_a100", 0, 0, "'dgx_a100' is not MACHINE:NODES"},
           Case{"dgx_h100:2+dgx_a100:0", 0, 0, "'dgx_a100:0' is not MACHINE:NODES"},
           Case{"dgx_h100:2+", 0, 0, "'' is not MACHINE:NODES"},
           Case{"dgx_h100:2+dgx_a100:x", 0, 0, "'dgx_a100:x' is not MACHINE:NODES"},
           Case{"dgx_h100:2+dgx:2", 0, 0, "machine 'dgx' is neither a file nor one of"},
           Case{"dgx_h100:2+dgx_h100:2", 0, 0, "H100-SXM5-80GB is named twice"},
           Case{"dgx_h100:2+dgx_a100:2", 4, 0, "--nodes: --machine=dgx_h100:2+dgx_a100:2 says"},
           Case{"dgx_h100:1+k80_cluster:1", 0, 0, "dgx_h100 and k80_cluster: one has NCCL's"},
           Case{"dgx_h100:1+gb200_nvl72:1", 0, 0, "--devices_per_node makes them alike"},
           Case{"dgx_h100:65536+dgx_a100:1", 0, 0, "more than 65536 devices"},
       }) {
    const auto machine = LoadMachine(c.spec, c.nodes, c.devices_per_node);
    EXPECT_FALSE(machine.ok()) << c.spec;
    EXPECT_THAT(std::string(machine.status().message()), HasSubstr(c.message)) << c.spec;
    EXPECT_EQ(std::string(machine.status().message()).find('\n'), std::string::npos);
  }
  const auto alike = LoadMachine("dgx_h100:1+gb200_nvl72:1", 0, 4);
  EXPECT_TRUE(alike.ok()) << alike.status();
}

}  // namespace
}  // namespace isomer
