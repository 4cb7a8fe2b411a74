#include "optimizer/machine.h"

#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/cost.h"

namespace isomer {
namespace {

using testing::HasSubstr;

TEST(Machine, PresetsLoad) {
  for (const std::string& name : MachinePresets()) {
    const auto machine = LoadMachine(name);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->name, name);
    EXPECT_EQ(machine->num_nodes(), 1);
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
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << contents;
  return path;
}

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
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadMachineFile,
    testing::Values(BadFile{"Empty", "", ""}, BadFile{"Random", "\x8f\x02garbage\xff", ""},
                    BadFile{"UnknownField", "name: 'm' nods: 3", "nods"},
                    BadFile{"NoLevels",
                            "name: 'm' device { peak_tflops: 1 memory_gib: 1 memory_gb_per_s: 1 }",
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
                            "count"}),
    [](const auto& info) { return info.param.name; });

TEST(Machine, UnknownNameListsThePresets) {
  const auto machine = LoadMachine("no_such_machine");
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr("dgx_h100"));
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

TEST(Cost, RingsWithinANode) {
  const CostModel cost = SimpleCost();
  const std::vector<int32_t> four = {0, 1, 2, 3};
  EXPECT_DOUBLE_EQ(cost.CollectiveUs(Collective::kAllGather, 400, four), 3);
  EXPECT_DOUBLE_EQ(cost.CollectiveUs(Collective::kReduceScatter, 400, four), 3);
  EXPECT_DOUBLE_EQ(cost.CollectiveUs(Collective::kAllReduce, 400, four), 6);
}

TEST(Cost, AGroupGetsItsShareOfANodesLink) {
  const CostModel cost = SimpleCost();
  // All eight: half of the buffer crosses each node's link of 10. A pair has a quarter of it.
  EXPECT_DOUBLE_EQ(
      cost.CollectiveUs(Collective::kAllGather, 400, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}),
      20);
  EXPECT_DOUBLE_EQ(cost.CollectiveUs(Collective::kAllGather, 400, std::vector<int32_t>{0, 4}), 80);
}

}  // namespace
}  // namespace isomer
