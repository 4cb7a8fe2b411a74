#include "pcg/schedule/symmetry/symmetric_devices.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "pcg/schedule/symmetry/class_schedule.h"

namespace isomer {
namespace {

// On four nodes of two devices: columns over two and two neighbours, samples over the halves.
Plan ColumnsAndSamples() {
  Plan plan;
  plan.graph = ParseGraph(R"(
%0 = input "x" : f32[32,8]
%1 = weight "w" : f32[8,16]
%2 = weight "v" : f32[8,16]
%3 = input "target" : f32[32,16]
%4 = partition(%0) {axis=0, degree=2} : f32[32:2,8]
%5 = replicate(%4) {degree=4} : f32[32:2,8] c4
%6 = partition(%1) {axis=1, degree=4} : f32[8,16:4]
%7 = replicate(%6) {degree=2} : f32[8,16:4] c2
%8 = partition(%2) {axis=1, degree=4} : f32[8,16:4]
%9 = replicate(%8) {degree=2} : f32[8,16:4] c2
%10 = matmul(%5, %7) : f32[32:2,16:4]
%11 = matmul(%5, %9) : f32[32:2,16:4]
%12 = add(%10, %11) : f32[32:2,16:4]
%13 = partition(%3) {axis=0, degree=2} : f32[32:2,16]
%14 = partition(%13) {axis=1, degree=4} : f32[32:2,16:4]
%15 = mse(%12, %14) : f32[] p8
%16 = reduce(%15) {degree=8} : f32[]
output "loss" = %16
)")
                   .value();
  plan.mode = "training";
  plan.model.loss = "loss";
  plan.num_devices = 8;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    plan.views.push_back(RowMajorView(plan.graph.node(id).outputs[0]));
  }
  for (int samples : {4, 13}) plan.views[samples].strides[0] = 4;
  for (int weights : {7, 9}) plan.views[weights].strides = {0, 1, 4, 0};
  return plan;
}

using What = std::tuple<TaskKind, Phase, int>;

std::vector<What> ProgramOf(const Schedule& schedule, int32_t device) {
  std::vector<What> program;
  for (int32_t t : schedule.programs[device]) {
    const Task& task = schedule.tasks[t];
    // The host takes back one copy of each shard.
    if (task.phase == Phase::kUnload) continue;
    program.emplace_back(task.kind, task.phase, task.node.value);
  }
  return program;
}

// Both halves own a weight, so that they do not do the same. Neighbours do, though: they are
// collapsed, and not kept since the halves are.
TEST(SymmetricDevices, AlongSomeDigitsOnly) {
  Plan plan = ColumnsAndSamples();
  plan.update.bucket_bytes = 0;
  constexpr int64_t kManyShards = 1'000'000;
  const auto represented = [&](UpdateMethod method) {
    plan.update.method = method;
    const auto few = LowerPlanInClasses(plan, {2}, kManyShards, kManyShards);
    const auto all = LowerPlan(plan);
    EXPECT_TRUE(few.ok() && all.ok()) << few.status() << all.status();
    for (int32_t device : few->schedule.represented) {
      EXPECT_EQ(ProgramOf(few->schedule, device), ProgramOf(all->schedule, device)) << device;
    }
    return few->schedule.represented;
  };
  EXPECT_EQ(represented(UpdateMethod::kAllReduce), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(represented(UpdateMethod::kOwner), (std::vector<int32_t>{0, 1, 4, 5}));
}

}  // namespace
}  // namespace isomer
