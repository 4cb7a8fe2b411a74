#include "pcg/schedule/symmetry/device_classes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"

namespace isomer {
namespace {

// What every device does in the plan's schedule is what its class does in that of fewer devices:
// the same tasks of the same nodes in the same order, with the classes of the same members.
void ExpectSamePrograms(const Plan& plan, int64_t devices) {
  const std::optional<DeviceClasses> classes = ClassesOfDevices(plan);
  ASSERT_TRUE(classes.has_value());
  EXPECT_EQ(classes->plan.num_devices, devices);
  const absl::StatusOr<LoweredPlan> all = LowerPlan(plan), few = LowerPlan(classes->plan);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  EXPECT_EQ(CheckSchedule(all->mapped.graph, all->schedule), absl::OkStatus());
  EXPECT_EQ(CheckSchedule(few->mapped.graph, few->schedule), absl::OkStatus());
  for (int64_t device = 0; device < plan.num_devices; ++device) {
    const int64_t other = classes->ClassOf(device);
    // What the host takes back is one copy of each shard: not every device has a part in it.
    const auto program_of = [](const Schedule& schedule, int64_t d) {
      std::vector<const Task*> program;
      for (int32_t t : schedule.programs[d]) {
        if (schedule.tasks[t].phase != Phase::kUnload) program.push_back(&schedule.tasks[t]);
      }
      return program;
    };
    const auto here = program_of(all->schedule, device), there = program_of(few->schedule, other);
    ASSERT_EQ(here.size(), there.size()) << "device " << device;
    for (size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(here[i]->kind, there[i]->kind);
      EXPECT_EQ(here[i]->phase, there[i]->phase);
      EXPECT_EQ(here[i]->node, there[i]->node);
      std::set<int64_t> members;
      for (int32_t member : here[i]->devices) members.insert(classes->ClassOf(member));
      EXPECT_EQ(members, std::set<int64_t>(there[i]->devices.begin(), there[i]->devices.end()))
          << "device " << device << ", instruction " << i;
    }
  }
}

Plan PlanOf(const std::string& text, int64_t devices) {
  Plan plan;
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  plan.graph = *std::move(graph);
  plan.mode = "training";
  plan.model.loss = "loss";
  plan.num_devices = devices;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    plan.views.push_back(RowMajorView(plan.graph.node(id).outputs[0]));
  }
  return plan;
}

TEST(DeviceClasses, DataParallelismOverSixteen) {
  ExpectSamePrograms(PlanOf(R"(
%0 = input "x" : f32[32,8]
%1 = weight "w" : f32[8,4]
%2 = input "labels" : i64[32]
%3 = partition(%0) {axis=0, degree=16} : f32[32:16,8]
%4 = replicate(%1) {degree=16} : f32[8,4] c16
%5 = matmul(%3, %4) : f32[32:16,4]
%6 = partition(%2) {axis=0, degree=16} : i64[32:16]
%7 = cross_entropy(%5, %6) : f32[] p16
%8 = reduce(%7) {degree=16} : f32[]
output "loss" = %8
)",
                            16),
                     2);
}

// A long branch with an exchange in it beside a short one: whether the short one is computed at
// once or during the exchange is the plan's, and so that of its classes.
TEST(DeviceClasses, BranchesInThePlansOrder) {
  Plan plan = PlanOf(R"(
%0 = input "x" : f32[32,8]
%1 = weight "w" : f32[8,32]
%2 = weight "v" : f32[8,32]
%3 = input "labels" : i64[32]
%4 = partition(%0) {axis=0, degree=16} : f32[32:16,8]
%5 = replicate(%1) {degree=16} : f32[8,32] c16
%6 = replicate(%2) {degree=16} : f32[8,32] c16
%7 = matmul(%4, %5) : f32[32:16,32]
%8 = combine(%7) {axis=0, degree=16} : f32[32,32]
%9 = partition(%8) {axis=1, degree=16} : f32[32,32:16]
%10 = relu(%9) : f32[32,32:16]
%11 = combine(%10) {axis=1, degree=16} : f32[32,32]
%12 = partition(%11) {axis=0, degree=16} : f32[32:16,32]
%13 = matmul(%4, %6) : f32[32:16,32]
%14 = relu(%13) : f32[32:16,32]
%15 = add(%12, %14) : f32[32:16,32]
%16 = partition(%3) {axis=0, degree=16} : i64[32:16]
%17 = cross_entropy(%15, %16) : f32[] p16
%18 = reduce(%17) {degree=16} : f32[]
output "loss" = %18
)",
                     16);
  const auto order_of = [](const Plan& of) {
    const absl::StatusOr<LoweredPlan> lowered = LowerPlan(of);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    std::vector<NodeId> nodes;
    for (int32_t t : lowered->schedule.programs[0])
      nodes.push_back(lowered->schedule.tasks[t].node);
    return nodes;
  };
  const std::vector<NodeId> at_once = order_of(plan);
  ExpectSamePrograms(plan, 2);
  plan.spread_branches = true;
  EXPECT_NE(order_of(plan), at_once);
  ExpectSamePrograms(plan, 2);
}

// Copies in two strides: of a table, over the batch and over heads, with the sequence between them.
TEST(DeviceClasses, CopiesInTwoStrides) {
  Plan plan = PlanOf(R"(
%0 = input "x" : f32[16,4,8,4]
%1 = weight "cos" : f32[8,2]
%2 = weight "sin" : f32[8,2]
%3 = partition(%0) {axis=0, degree=8} : f32[16:8,4,8,4]
%4 = partition(%3) {axis=1, degree=2} : f32[16:8,4:2,8,4]
%5 = partition(%4) {axis=2, degree=2} : f32[16:8,4:2,8:2,4]
%6 = partition(%1) {axis=0, degree=2} : f32[8:2,2]
%7 = replicate(%6) {degree=16} : f32[8:2,2] c16
%8 = partition(%2) {axis=0, degree=2} : f32[8:2,2]
%9 = replicate(%8) {degree=16} : f32[8:2,2] c16
%10 = rotary(%5, %7, %9) : f32[16:8,4:2,8:2,4]
output "y" = %10
)",
                     32);
  plan.mode = "inference";
  plan.model.loss = "";
  for (const int of_table : {7, 9}) {
    plan.views[of_table] = {.strides = {2, 0, 1, 0}, .outer = {{2, 2, 4}}};
  }
  plan.views[3].strides = {4, 0, 0, 0, 0, 0};
  plan.views[4].strides = {4, 1, 0, 0, 0, 0};
  for (const int of_all : {5, 10}) plan.views[of_all].strides = {4, 1, 2, 0, 0, 0};
  for (const int of_half : {6, 8}) plan.views[of_half].strides = {2, 0, 0, 0};
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    ASSERT_EQ(ValidateView(plan.views[id], plan.graph.node({id}).outputs[0], 32), absl::OkStatus());
  }
  ExpectSamePrograms(plan, 8);
  const std::optional<DeviceClasses> classes = ClassesOfDevices(plan);
  EXPECT_EQ(classes->plan.views[7], plan.views[7]) << "4 copies of each half";
}

// Two stages of eight devices, each device with two micro-batches: the stages' digit stays.
TEST(DeviceClasses, DataParallelismInStagesOfAPipeline) {
  Plan plan = PlanOf(R"(
%0 = input "x" : f32[32,8]
%1 = weight "w" : f32[8,4]
%2 = partition(%0) {axis=0, degree=16} : f32[32:16,8]
%3 = replicate(%1) {degree=16} : f32[8,4] c16
%4 = matmul(%2, %3) : f32[32:16,4]
%5 = weight "v" : f32[4,4]
%6 = input "labels" : i64[32]
%7 = replicate(%5) {degree=16} : f32[4,4] c16
%8 = matmul(%4, %7) : f32[32:16,4]
%9 = partition(%6) {axis=0, degree=16} : i64[32:16]
%10 = cross_entropy(%8, %9) : f32[] p16
%11 = reduce(%10) {degree=16} : f32[]
output "loss" = %11
)",
                     16);
  for (size_t id = 0; id < plan.views.size(); ++id) {
    MachineView& view = plan.views[id];
    view.start = id < 5 ? 0 : 8;
    view.moments.assign(view.strides.size(), 1);
    for (size_t axis = 0; axis < view.strides.size(); ++axis) {
      if (view.strides[axis] > 0) view.moments[axis] = 2;
    }
  }
  ExpectSamePrograms(plan, 4);
}

// Rows over 4 groups of 4, columns and then the contraction within each: digits of radix 4 and 4.
TEST(DeviceClasses, TensorWithinDataParallelism) {
  Plan plan = PlanOf(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%5 = replicate(%4) {degree=4} : f32[8:4,4] c4
%6 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%7 = replicate(%6) {degree=4} : f32[4,16:4] c4
%8 = matmul(%5, %7) : f32[8:4,16:4]
%9 = relu(%8) : f32[8:4,16:4]
%10 = partition(%2) {axis=0, degree=4} : f32[16:4,4]
%11 = replicate(%10) {degree=4} : f32[16:4,4] c4
%12 = matmul(%9, %11) : f32[8:4,4] p4
%13 = reduce(%12) {degree=4} : f32[8:4,4]
%14 = partition(%3) {axis=0, degree=4} : i64[8:4]
%15 = cross_entropy(%13, %14) : f32[] p4
%16 = reduce(%15) {degree=4} : f32[]
output "loss" = %16
)",
                     16);
  // Weights: columns side by side, copies over the groups; what is held by a group's first device.
  for (int id : {7, 11}) plan.views[id].strides = {0, 0, 4, 0};
  plan.views[7].strides[1] = 1;
  plan.views[11].strides[0] = 1;
  plan.views[4].strides[0] = plan.views[13].strides[0] = 4;
  plan.views[14].strides[0] = plan.views[15].strides[1] = 4;
  ExpectSamePrograms(plan, 4);
}

TEST(DeviceClasses, OddDegreesKeepThreeOfNine) {
  ExpectSamePrograms(PlanOf(R"(
%0 = weight "w" : f32[18]
%1 = partition(%0) {axis=0, degree=9} : f32[18:9]
%2 = tanh(%1) : f32[18:9]
%3 = reduce_sum(%2) {axes=[0]} : f32[1] p9
%4 = reduce(%3) {degree=9} : f32[1]
output "loss" = %4
)",
                            9),
                     3);
}

TEST(DeviceClasses, ViewsThatDoNotLineUpStandForThemselves) {
  Plan plan = PlanOf(R"(
%0 = weight "w" : f32[8]
%1 = partition(%0) {axis=0, degree=4} : f32[8:4]
%2 = tanh(%1) : f32[8:4]
%3 = reduce_sum(%2) {axes=[0]} : f32[1] p4
%4 = reduce(%3) {degree=4} : f32[1]
output "loss" = %4
)",
                     8);
  EXPECT_TRUE(ClassesOfDevices(plan).has_value());
  plan.views[2].start = 1;
  EXPECT_FALSE(ClassesOfDevices(plan).has_value());
  plan.views[2].start = 0;
  plan.views[2].strides[0] = 2;
  plan.views[1].strides[0] = -1;
  EXPECT_FALSE(ClassesOfDevices(plan).has_value());
}

// Windows reach into neighbours: a first, a middle and a last piece are three.
TEST(DeviceClasses, PiecesWithHalosAllCount) {
  EXPECT_FALSE(ClassesOfDevices(PlanOf(R"(
%0 = input "x" : f32[1,1,16,4]
%1 = weight "w" : f32[1,1,3,3]
%2 = partition(%0) {axis=2, degree=4} : f32[1,1,16:4,4]
%3 = replicate(%1) {degree=4} : f32[1,1,3,3] c4
%4 = conv2d(%2, %3) {dilation=[1,1], groups=1, padding=[1,1,1,1], stride=[1,1]} : f32[1,1,16:4,4]
%5 = reduce_sum(%4) {axes=[0,1,2,3]} : f32[1,1,1,1] p4
%6 = reduce(%5) {degree=4} : f32[1,1,1,1]
output "loss" = %6
)",
                                       4))
                   .has_value());
}

// Eight shards lie over digits of 2 and 4 values, then over one of 8: cut to 4 and to 2 they are no
// plan, unless the digit of 8 keeps 4 of them.
TEST(DeviceClasses, WidenDigitsOverWhichAnAxisMoves) {
  Plan plan = PlanOf(R"(
%0 = weight "v" : f32[2]
%1 = partition(%0) {axis=0, degree=2} : f32[2:2]
%2 = weight "w" : f32[64]
%3 = partition(%2) {axis=0, degree=8} : f32[64:8]
%4 = tanh(%3) : f32[64:8]
%5 = reduce_sum(%4) {axes=[0]} : f32[1] p8
%6 = reduce(%5) {degree=8} : f32[1]
output "loss" = %6
)",
                     64);
  plan.views[4].strides[0] = plan.views[5].strides[2] = 8;
  EXPECT_FALSE(ClassesOfDevices(plan).has_value());
  const std::optional<DeviceClasses> classes = ClassesOfDevices(plan, {.widen = true});
  ASSERT_TRUE(classes.has_value());
  EXPECT_EQ(classes->plan.num_devices, 16);
  EXPECT_EQ(classes->reduced_radix, (std::vector<int64_t>{2, 2, 4}));
  EXPECT_EQ(LowerPlan(classes->plan).status(), absl::OkStatus());
}

// The second dim moves over two digits because it falls short; the outer one has to keep all of its
// four values for the first dim, and then two of the inner one do.
TEST(DeviceClasses, NarrowDigitsThatWereWidenedForWhatOthersDo) {
  Plan plan = PlanOf(R"(
%0 = weight "w" : f32[32,32]
%1 = partition(%0) {axis=0, degree=32} : f32[32:32,32]
%2 = partition(%1) {axis=1, degree=4} : f32[32:32,32:4]
%3 = tanh(%2) : f32[32:32,32:4]
%4 = combine(%3) {axis=0, degree=8} : f32[32:4,32:4]
%5 = partition(%4) {axis=1, degree=8} : f32[32:4,32:32]
%6 = tanh(%5) : f32[32:4,32:32]
%7 = reduce_sum(%6) {axes=[0,1]} : f32[1,1] p128
%8 = reduce(%7) {degree=128} : f32[1,1]
output "loss" = %8
)",
                     128);
  for (int id : {1, 2, 3}) plan.views[id].strides[0] = 4;
  for (int id : {2, 3, 4}) plan.views[id].strides[1] = 1;
  plan.views[4].strides[0] = 32;
  for (int id : {5, 6}) {
    plan.views[id].strides[0] = 1;
    plan.views[id].strides[1] = 4;
  }
  const auto classes = ClassesOfDevices(plan, {.whole = 4, .widen = true});
  ASSERT_TRUE(classes.has_value());
  EXPECT_EQ(classes->radix, (std::vector<int64_t>{4, 8, 4}));
  EXPECT_EQ(classes->reduced_radix, (std::vector<int64_t>{4, 2, 4}));
  EXPECT_EQ(LowerPlan(classes->plan).status(), absl::OkStatus());
}

}  // namespace
}  // namespace isomer
