#include "optimizer/machine/machine.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "optimizer/cost/cost.h"
#include "optimizer/machine/machine_units.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Machine, PresetsLoad) {
  for (const std::string& name : MachinePresets()) {
    const auto machine = LoadMachine(name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->name, name);
    EXPECT_GE(machine->num_devices(), 2);
    const auto two = LoadMachine(name, 2);
    ASSERT_TRUE(two.ok()) << two.status();
    EXPECT_EQ(two->num_nodes(), 2);
  }
}

TEST(Machine, NodesAndDevicesPerNodeOverride) {
  const auto dgx = LoadMachine("dgx_h100", 2, 4);
  ASSERT_TRUE(dgx.ok()) << dgx.status();
  EXPECT_EQ(dgx->num_devices(), 8);
  EXPECT_EQ(dgx->devices_per_node(), 4);
  EXPECT_EQ(dgx->ToString(), "dgx_h100: 2 nodes of 4 H100-SXM5-80GB");
  const auto summit = LoadMachine("summit", 2, 4);
  ASSERT_TRUE(summit.ok()) << summit.status();
  EXPECT_EQ(summit->levels[0].count, 2);  // two of each socket
  EXPECT_EQ(summit->levels[1].count, 2);
  EXPECT_EQ(LoadMachine("summit", 1, 2)->levels[1].count, 1);  // fits one socket
  EXPECT_FALSE(LoadMachine("summit", 1, 5).ok());
}

std::string WriteFile(const std::string& name, const std::string& contents) {
  const std::string path = absl::StrCat(testing::TempDir(), getpid(), "_", name);
  std::ofstream(path) << contents;
  return path;
}

#define MACHINE "name: 'm' device { peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 } "

struct BadFile {
  const char* name;
  const char* contents;
  const char* message;
};

class BadMachineFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadMachineFile, IsRefused) {
  const std::string path =
      WriteFile(std::string(GetParam().name) + ".textproto", GetParam().contents);
  const auto machine = LoadMachine(path);
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr(path));
  EXPECT_THAT(std::string(machine.status().message()), Not(HasSubstr("\n")));
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadMachineFile,
    testing::Values(
        BadFile{"Empty", "", ""}, BadFile{"Random", "\x8f\x02garbage\xff", ""},
        BadFile{"UnknownField", "name: 'm' nods: 3", "nods"},
        BadFile{"NoLevels", "name: 'm' device { peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 }",
                "levels"},
        BadFile{"NegativeRate",
                "name: 'm' device { peak_tflops: -1 memory_gib: 1 memory_gb_per_s: 1 }",
                "peak_tflops"},
        BadFile{"RateOfUnknownType",
                "name: 'm' device { peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 "
                "rates { dtype: 'int4' peak_tflops: 1 } }",
                "int4"},
        BadFile{"ZeroCount",
                "name: 'm' device { peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 } "
                "levels { name: 'node' count: 0 gb_per_s: 1 }",
                "count"},
        BadFile{"NoBandwidth", MACHINE "levels { name: 'rail' count: 2 }",
                "level 'rail': no bandwidth"},
        BadFile{"TwoBandwidths",
                MACHINE "levels { name: 'rail' count: 2 gb_per_s: 1 bandwidth: '1 GB/s' }",
                "level 'rail': more than one"},
        BadFile{"ZeroBandwidth", MACHINE "levels { name: 'rail' count: 2 bandwidth: '0 GB/s' }",
                "level 'rail': the bandwidth must be positive"},
        BadFile{"UnknownUnit", MACHINE "levels { name: 'rail' count: 2 bandwidth: '25 Gb/s' }",
                "level 'rail': bandwidth: unknown unit 'Gb/s' in '25 Gb/s'"},
        BadFile{"NoUnit", MACHINE "levels { name: 'rail' count: 2 bandwidth: '25' }",
                "level 'rail': bandwidth: no unit in '25'"},
        BadFile{"UnknownTimeUnit",
                MACHINE "levels { name: 'rail' count: 2 gb_per_s: 1 latency: '3 min' }",
                "level 'rail': latency: unknown unit 'min'"},
        BadFile{"UnknownLink", MACHINE "levels { name: 'rail' count: 2 link: 'NVLink 99' }",
                "'NVLink 99'"},
        BadFile{"UnknownKind",
                "name: 'm' kinds { name: 'a' peak_tflops: 1 memory_gib: 1 "
                "memory_gb_per_s: 1 } levels { name: 'rail' count: 2 gb_per_s: 1 "
                "unit_kinds: 'b' }",
                "level 'rail': there is no device kind 'b'"},
        BadFile{"KindsOfNoUnits",
                "name: 'm' kinds { name: 'a' peak_tflops: 1 memory_gib: 1 "
                "memory_gb_per_s: 1 } kinds { name: 'b' peak_tflops: 1 memory_gib: 1 "
                "memory_gb_per_s: 1 } levels { name: 'rail' count: 2 gb_per_s: 1 }",
                "no level says by unit_kinds"},
        BadFile{"AMillionDevices",
                MACHINE "levels { name: 'node' count: 1000 gb_per_s: 1 } levels { "
                        "name: 'cluster' count: 1000 gb_per_s: 1 }",
                "more than 65536 devices"},
        BadFile{"DevicesApart", MACHINE "devices { name: 'a' } devices { name: 'b' }",
                "there is no way from 'a' to 'b': no link leaves 'a'"},
        BadFile{"LinkToNowhere",
                MACHINE "devices { name: 'a' } links { from: 'a' to: 's' gb_per_s: 1 }",
                "link from 'a' to 's': there is no device or switch 's'"},
        BadFile{"LinkWithoutBandwidth",
                MACHINE "devices { name: 'a' } devices { name: 'b' } links { from: 'a' "
                        "to: 'b' }",
                "link from 'a' to 'b': no bandwidth"},
        BadFile{"PathOverMissingLink",
                MACHINE "devices { name: 'a' } devices { name: 'b' } switches: 's' "
                        "links { from: 'a' to: 'b' gb_per_s: 1 } paths { from: 'a' to: "
                        "'b' via: 's' }",
                "takes a link from 'a' to 's', which there is not"}),
    [](const auto& info) { return info.param.name; });

TEST(Machine, UnknownNameListsThePresets) {
  const auto machine = LoadMachine("no_such_machine");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr("dgx_h100"));
}

std::vector<std::string> PathNames(const Machine& machine, int64_t from, int64_t to) {
  std::vector<std::string> names;
  for (LinkId id : machine.Path(from, to)) names.push_back(machine.LinkName(id));
  return names;
}

TEST(Links, K80MessagesTakeTheSwitchOfThePairOrTheBus) {
  const auto k80 = LoadMachine("k80_cluster");
  ASSERT_TRUE(k80.ok()) << k80.status();
  EXPECT_THAT(PathNames(*k80, 0, 0), ElementsAre());
  EXPECT_THAT(PathNames(*k80, 0, 1), ElementsAre("device 0 up", "device 1 down"));
  EXPECT_THAT(PathNames(*k80, 0, 2), ElementsAre("device 0 up", "bus of node 0", "device 2 down"));
  EXPECT_THAT(PathNames(*k80, 1, 7), ElementsAre("device 1 up", "bus of node 0", "node 0 up",
                                                 "node 1 down", "bus of node 1", "device 7 down"));
}

TEST(Links, NVLinkIsNotOnTheWayToInfiniBand) {
  const auto dgx = LoadMachine("dgx_h100", 2);
  ASSERT_TRUE(dgx.ok()) << dgx.status();
  EXPECT_THAT(PathNames(*dgx, 3, 12), ElementsAre("node 0 up", "node 1 down"));
  EXPECT_THAT(PathNames(*dgx, 3, 4), ElementsAre("device 3 up", "device 4 down"));
}

TEST(Links, AreNumberedWithoutGapsAndNamedApart) {
  for (const char* name : {"k80_cluster", "summit"}) {
    const auto machine = LoadMachine(name, 3);
    ASSERT_TRUE(machine.ok()) << machine.status();
    std::set<std::string> names;
    std::set<LinkId> used;
    for (LinkId id = 0; id < machine->num_links(); ++id) {
      names.insert(machine->LinkName(id));
      EXPECT_GT(machine->link(id).bytes_per_us, 0);
    }
    EXPECT_EQ(names.size(), static_cast<size_t>(machine->num_links()));
    for (int64_t a = 0; a < machine->num_devices(); ++a) {
      for (int64_t b = 0; b < machine->num_devices(); ++b) {
        for (LinkId id : machine->Path(a, b)) used.insert(id);
      }
    }
    EXPECT_EQ(used.size(), static_cast<size_t>(machine->num_links()));
    EXPECT_EQ(*used.rbegin(), machine->num_links() - 1);
  }
}

TEST(Links, LatenciesOfALevelAddUpToItsLatency) {
  const auto dgx = LoadMachine("dgx_h100", 2);
  ASSERT_TRUE(dgx.ok()) << dgx.status();
  EXPECT_DOUBLE_EQ(CostModel(*dgx).SendUs(0, 0, 1), dgx->levels[0].latency_us);
  EXPECT_DOUBLE_EQ(CostModel(*dgx).SendUs(0, 0, 8), dgx->levels[1].latency_us);
  EXPECT_DOUBLE_EQ(CostModel(*dgx).SendUs(450000, 0, 1), dgx->levels[0].latency_us + 1);
}

TEST(Links, MessagesOfNcclWaitForEachOthersLatencyByEights) {
  Machine machine = LoadMachine("dgx_h100", 2).value();
  const double latency_us = machine.levels[1].latency_us;
  EXPECT_EQ(machine.LatencyUs(1, 0), 0);
  EXPECT_DOUBLE_EQ(machine.LatencyUs(1, 8), latency_us);
  EXPECT_DOUBLE_EQ(machine.LatencyUs(1, 9), 2 * latency_us);
  machine.nccl = false;
  EXPECT_DOUBLE_EQ(machine.LatencyUs(1, 9), 9 * latency_us);
}

constexpr char kMixed[] = R"(
  name: "mixed"
  kinds { name: "fast" peak_tflops: 2 memory_gib: 2 memory_gb_per_s: 10 launch_us: 1 }
  kinds { name: "slow" peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 10 launch_us: 1 }
  levels { name: "node" count: 2 gb_per_s: 10 }
  levels { name: "cluster" count: 2 gb_per_s: 1 unit_kinds: "fast" unit_kinds: "slow" }
)";

TEST(Kinds, ACallTakesAsLongAsOnTheSlowestDevice) {
  const std::string path = WriteFile("mixed.textproto", kMixed);
  const auto machine = LoadMachine(path);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->kind(1).name, "fast");
  EXPECT_EQ(machine->kind(2).name, "slow");
  EXPECT_EQ(machine->memory_bytes(), int64_t{1} << 30);
  EXPECT_EQ(machine->device_name(), "fast and slow");
  const CostModel cost(*machine);
  EXPECT_DOUBLE_EQ(cost.ComputeUs(2e6, 0, DataType::kFloat32, 0), 2);
  EXPECT_DOUBLE_EQ(cost.ComputeUs(2e6, 0, DataType::kFloat32, 3), 3);
  EXPECT_DOUBLE_EQ(cost.ComputeUs(2e6, 0), 3);
  EXPECT_THAT(cost.OnePerKind({0, 1, 2, 3}), ElementsAre(0, 2));
  // One node is of one kind.
  const auto one = LoadMachine(path, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->memory_bytes(), int64_t{2} << 30);
  EXPECT_DOUBLE_EQ(CostModel(*one).ComputeUs(2e6, 0), 2);
  std::remove(path.c_str());
}

// Four devices in a ring, and a way by a switch.
constexpr char kRing[] = R"(
  name: "ring"
  device { name: "d" peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 }
  devices { name: "a" } devices { name: "b" } devices { name: "c" } devices { name: "d" }
  switches: "host"
  links { from: "a" to: "b" gb_per_s: 10 latency_us: 1 }
  links { from: "b" to: "c" gb_per_s: 10 latency_us: 1 }
  links { from: "c" to: "d" gb_per_s: 10 latency_us: 1 }
  links { from: "d" to: "a" gb_per_s: 5 latency_us: 1 one_way: true }
  links { from: "a" to: "host" gb_per_s: 1 latency_us: 5 shared: true }
  links { from: "host" to: "c" gb_per_s: 1 latency_us: 5 }
  paths { from: "a" to: "c" via: "host" }
)";

TEST(Topology, PathsAreThoseGivenElseTheShortest) {
  const std::string path = WriteFile("ring.textproto", kRing);
  const auto machine = LoadMachine(path);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->num_devices(), 4);
  EXPECT_EQ(machine->num_nodes(), 1);
  EXPECT_THAT(PathNames(*machine, 0, 1), ElementsAre("a to b"));
  EXPECT_THAT(PathNames(*machine, 0, 2), ElementsAre("a and host", "host to c"));
  EXPECT_THAT(PathNames(*machine, 2, 0), ElementsAre("c to b", "b to a"));
  EXPECT_THAT(PathNames(*machine, 3, 0), ElementsAre("d to a"));
  EXPECT_THAT(PathNames(*machine, 0, 3), ElementsAre("a to b", "b to c", "c to d"));
  // A ring in the order of the devices goes at the rate of its slowest link.
  EXPECT_DOUBLE_EQ(machine->levels[0].bytes_per_us, 5000);
  EXPECT_THAT(std::string(LoadMachine(path, 2).status().message()), HasSubstr("--nodes"));
  std::remove(path.c_str());
}

TEST(Topology, LevelsGroupNamedDevices) {
  const std::string path = WriteFile(
      "pairs.textproto",
      std::string(kRing) + "levels { name: 'pair' count: 2 } levels { name: 'node' count: 2 }");
  const auto machine = LoadMachine(path);
  ASSERT_TRUE(machine.ok()) << machine.status();
  // Within pairs, each link carries one message. Between pairs, they meet on the links in between.
  EXPECT_DOUBLE_EQ(machine->levels[0].bytes_per_us, 10000);
  EXPECT_LT(machine->levels[1].bytes_per_us, 2 * machine->levels[0].bytes_per_us);
  std::remove(path.c_str());
}

TEST(Units, AreReadAsTheySay) {
  EXPECT_DOUBLE_EQ(*ParseBandwidth("25 GB/s"), 25e3);
  EXPECT_DOUBLE_EQ(*ParseBandwidth("200 Gbit/s"), 25e3);
  EXPECT_DOUBLE_EQ(*ParseBandwidth("1.5GiB/s"), 1.5 * 1024 * 1024 * 1024 / 1e6);
  EXPECT_DOUBLE_EQ(*ParseLatency("800 ns"), 0.8);
  EXPECT_FALSE(ParseBandwidth("fast").ok());
  EXPECT_FALSE(ParseBandwidth("").ok());
}

// 4 devices a node at 100 bytes/us each, nodes at 10 bytes/us, no latency.
CostModel SimpleCost() {
  Machine machine;
  machine.name = "simple";
  machine.kinds[0].flops_per_us = 1000;
  machine.kinds[0].memory_bytes_per_us = 100;
  machine.kinds[0].memory_bytes = 1 << 20;
  machine.kinds[0].launch_us = 0;
  machine.levels = {{"node", 4, 100, 0}, {"cluster", 2, 10, 0}};
  return CostModel(machine);
}

TEST(Cost, LowPrecisionRunsAtItsOwnRate) {
  const auto dgx = LoadMachine("dgx_h100");
  ASSERT_TRUE(dgx.ok()) << dgx.status();
  EXPECT_NEAR(
      dgx->kinds[0].FlopsPerUs(DataType::kBFloat16) / dgx->kinds[0].FlopsPerUs(DataType::kFloat32),
      2, 0.01);
  const auto laptop = LoadMachine("laptop_cpu");
  ASSERT_TRUE(laptop.ok()) << laptop.status();
  EXPECT_EQ(laptop->kinds[0].FlopsPerUs(DataType::kBFloat16),
            laptop->kinds[0].FlopsPerUs(DataType::kFloat32));
  // The rate of a call is that of its first float operand.
  const CostModel cost(*dgx);
  const Work work{.flops = 1e12, .bytes = 0};
  const auto us = [&](DataType dtype) {
    const TensorType type = SequentialType({8, 8}, dtype);
    return cost.CallUs(OpKind::kMatMul, {type, type}, {}, work);
  };
  EXPECT_NEAR(us(DataType::kFloat32) / us(DataType::kFloat16), 2, 0.01);
}

TEST(Cost, RooflineTakesTheSlowerOfArithmeticAndMemory) {
  EXPECT_DOUBLE_EQ(SimpleCost().ComputeUs(5000, 100), 5);
  EXPECT_DOUBLE_EQ(SimpleCost().ComputeUs(1000, 900), 9);
}

}  // namespace
}  // namespace isomer
