#include "optimizer/cost/kernel_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/cost/cost.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/fp8.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

constexpr Roofline kRoofline{.launch_us = 1, .flops_per_us = 10, .memory_bytes_per_us = 10};

KernelTime Time(double us, double flops, int64_t bytes) {
  return {.median_us = us, .flops = flops, .bytes = bytes, .family = "relu f32"};
}

std::vector<TensorType> Vector(int64_t size) { return {SequentialType({size})}; }

TEST(KernelCost, TellsWhereEveryTimeComesFrom) {
  Profile profile;
  profile.task_overhead_us = 0.5;
  for (int64_t n : {10, 20, 40, 80}) {
    profile.kernels[KernelKey(OpKind::kRelu, Vector(n), {})] = Time(2 + n, n, 8 * n);
  }
  const KernelCost cost(&profile);
  const Work work{.flops = 30, .bytes = 240};
  const TaskTime measured = cost.CallTime(OpKind::kRelu, Vector(20), {}, work, kRoofline);
  EXPECT_EQ(measured.origin, TimeOrigin::kMeasured);
  EXPECT_EQ(measured.us, 22.5);
  EXPECT_TRUE(cost.Calibrations().empty());
  const TaskTime calibrated = cost.CallTime(OpKind::kRelu, Vector(30), {}, work, kRoofline);
  EXPECT_EQ(calibrated.origin, TimeOrigin::kCalibrated);
  EXPECT_NEAR(calibrated.us, 32.5, 0.1);
  ASSERT_EQ(cost.Calibrations().size(), 1u);
  EXPECT_EQ(cost.Calibrations()[0].from, "relu f32");
  EXPECT_LT(cost.Calibrations()[0].median_error, 0.01);
  const TaskTime roofline = cost.CallTime(OpKind::kRelu, Vector(30), {true}, work, kRoofline);
  EXPECT_EQ(roofline.origin, TimeOrigin::kRoofline);
  EXPECT_EQ(roofline.us, 25);
}

// Large ones at the rate of 8 bits, small ones for the price of rounding their operands.
TEST(KernelCost, ProductsInFp8PayWhereTheyAreLarge) {
  const CostModel cost(LoadMachine("dgx_h200", 1).value());
  const auto us = [&](int64_t size, Fp8Scaling scaling, const std::vector<bool>& wanted) {
    const std::vector<TensorType> types(2, SequentialType({size, size}, DataType::kBFloat16));
    const Operator op = WithFp8(OpKind::kMatMul, scaling);
    const Sharding sharding = InferSharding(op, types).value();
    const Work work = wanted.empty() ? ForwardWork(op, sharding, types)
                                     : GradientWork(op, sharding, types, wanted);
    return cost.CallUs(op, types, wanted, work);
  };
  for (const std::vector<bool>& wanted : {std::vector<bool>{}, std::vector<bool>{true, true}}) {
    const double large = us(8192, Fp8Scaling::kNone, wanted) / us(8192, Fp8Scaling::kRow, wanted);
    EXPECT_GT(large, 1.5);
    EXPECT_LT(large, 2);
    EXPECT_GT(us(8192, Fp8Scaling::kTensor, wanted), us(8192, Fp8Scaling::kBlock, wanted));
    EXPECT_LT(us(256, Fp8Scaling::kNone, wanted), us(256, Fp8Scaling::kRow, wanted));
  }
}

TEST(KernelCost, ElementwiseTasksAreInterpolatedBySize) {
  Profile profile;
  profile.tables["fill"] =
      SizeTable({{.bytes = 100, .median_us = 2}, {.bytes = 10000, .median_us = 8}});
  const KernelCost cost(&profile);
  EXPECT_DOUBLE_EQ(cost.ElementwiseTime(TaskKind::kFill, 1000, kRoofline).us, 4);
  EXPECT_EQ(cost.ElementwiseTime(TaskKind::kUpdate, 1000, kRoofline).origin, TimeOrigin::kRoofline);
  EXPECT_DOUBLE_EQ(KernelCost(nullptr).ElementwiseTime(TaskKind::kFill, 1000, kRoofline).us, 101);
}

TEST(KernelCost, BytesBesideOthersHaveTheBestRateOfAnySize) {
  Profile profile;
  profile.tables["update"] = SizeTable({{.bytes = 10, .median_us = 2},
                                        {.bytes = 1000, .median_us = 8},
                                        {.bytes = 2000, .median_us = 32}});
  const KernelCost cost(&profile);
  EXPECT_DOUBLE_EQ(cost.LeastElementwiseUs(TaskKind::kUpdate, 50, kRoofline), 0.4);
  for (int64_t bytes : {1, 10, 300, 1000, 1500, 2000, 100000}) {
    EXPECT_LE(cost.LeastElementwiseUs(TaskKind::kUpdate, bytes, kRoofline),
              cost.ElementwiseTime(TaskKind::kUpdate, bytes, kRoofline).us * (1 + 1e-12))
        << bytes;
  }
  // Without a profile, all but the launch.
  EXPECT_DOUBLE_EQ(cost.LeastElementwiseUs(TaskKind::kFill, 50, kRoofline), 5);
}

TEST(MeasuredCollectives, CountWithinANodeAndForTheirGroupSize) {
  Profile profile;
  profile.tables["all_reduce threads 2"] = SizeTable({{.bytes = 100, .median_us = 7}});
  profile.tables["all_reduce mpi 4"] = SizeTable({{.bytes = 100, .median_us = 9}});
  const CostModel cost(TestMachine(2, 4), &profile);
  EXPECT_EQ(cost.CollectiveUs(Collective::kAllReduce, 100, std::vector<int32_t>{0, 3}), 7);
  EXPECT_EQ(cost.MeasuredUs(TaskKind::kAllReduce, 100, std::vector<int32_t>{0, 3}), 7);
  for (const std::vector<int32_t>& group : {std::vector<int32_t>{3, 4}, {0, 1, 2, 3}}) {
    EXPECT_FALSE(cost.MeasuredUs(TaskKind::kAllReduce, 100, group).has_value());
    EXPECT_GT(cost.CollectiveUs(Collective::kAllReduce, 100, group), 0);
  }
  EXPECT_FALSE(cost.MeasuredUs(TaskKind::kAllGather, 100, std::vector<int32_t>{0, 1}).has_value());
  EXPECT_NE(MeasuredCollectives(&profile, "mpi").Find(TaskKind::kAllReduce, 4), nullptr);
  EXPECT_EQ(MeasuredCollectives(&profile, "mpi").Find(TaskKind::kAllReduce, 2), nullptr);
}

TEST(CheckProfileServes, RefusesAnotherDeviceInOneLine) {
  Profile profile;
  profile.device = {.backend = "cpu", .processor = HostProcessor()};
  Machine machine = TestMachine(1, 2);
  machine.kinds[0].name = "H100";
  EXPECT_FALSE(CheckProfileServes(profile, machine).ok());
  machine.kinds[0].name = "core";
  EXPECT_EQ(CheckProfileServes(profile, machine), absl::OkStatus());
  profile.device.processor = "another core";
  const absl::Status refused = CheckProfileServes(profile, machine);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("the profile is of another core"));
  EXPECT_THAT(std::string(refused.message()), testing::Not(testing::HasSubstr("\n")));
  profile.device = {.backend = "cuda", .processor = "NVIDIA H100 80GB HBM3"};
  EXPECT_FALSE(CheckProfileServes(profile, machine).ok());
  machine.kinds[0].name = "H100";
  EXPECT_EQ(CheckProfileServes(profile, machine), absl::OkStatus());
}

}  // namespace
}  // namespace isomer
