// In what gradients of weights are sent between devices and summed (UpdateOptions::gradient_sums):
// what is lowered, and that the checker refuses schedules that round more than the plan says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr DataType kExactSums = DataType::kFloat32, kLossySums = DataType::kBFloat16;

// A product and a bias on two devices, by data parallelism.
constexpr char kTwoReplicas[] = R"(
%0 = input "x" : f32[8,12]
%1 = weight "w" : f32[12,6]
%2 = weight "b" : f32[6]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=2} : f32[8:2,12]
%5 = replicate(%1) {degree=2} : f32[12,6] c2
%6 = replicate(%2) {degree=2} : f32[6] c2
%7 = partition(%3) {axis=0, degree=2} : i64[8:2]
%8 = matmul(%4, %5) : f32[8:2,6]
%9 = add(%8, %6) : f32[8:2,6]
%10 = relu(%9) : f32[8:2,6]
%11 = cross_entropy(%10, %7) : f32[] p2
%12 = reduce(%11) {degree=2} : f32[]
output "loss" = %12
)";

Schedule ReplicasSummedIn(DataType sums, UpdateMethod method, int64_t bucket_bytes = 1 << 20) {
  const Graph graph = Parsed(kTwoReplicas);
  ScheduleOptions options = TrainingOptions(2);
  options.update = {.optimizer = OptimizerKind::kAdam,
                    .method = method,
                    .bucket_bytes = bucket_bytes,
                    .gradient_sums = sums};
  auto schedule = LowerGraph(graph, ViewsOf(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

bool SumsGradients(const Task& task) {
  return task.phase == Phase::kBackward &&
         (task.kind == TaskKind::kAllReduce || task.kind == TaskKind::kReduceScatter ||
          task.kind == TaskKind::kReduce);
}

int64_t BytesOfSums(const Schedule& schedule) {
  int64_t bytes = 0;
  for (const Task& task : schedule.tasks) bytes += SumsGradients(task) ? task.bytes : 0;
  return bytes;
}

constexpr UpdateMethod kMethodsOfSums[] = {UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                                           UpdateMethod::kShardedWeights, UpdateMethod::kOwner};

TEST(GradientSums, AreHalfTheBytesAndUpdatesTakeThemAsTheyCome) {
  for (const UpdateMethod method : kMethodsOfSums) {
    SCOPED_TRACE(UpdateMethodName(method));
    const Schedule lossy = ReplicasSummedIn(kLossySums, method);
    EXPECT_EQ(CheckSchedule(Parsed(kTwoReplicas), lossy), absl::OkStatus());
    EXPECT_GT(BytesOfSums(lossy), 0);
    EXPECT_EQ(2 * BytesOfSums(lossy), BytesOfSums(ReplicasSummedIn(kExactSums, method)));
    for (const Task& task : lossy.tasks) {
      const bool sends = IsCommunication(task.kind) && !task.reads.empty();
      EXPECT_EQ(sends && lossy.buffers[task.reads[0]].dtype == kLossySums, SumsGradients(task));
      if (task.kind != TaskKind::kUpdate) continue;
      // The weight is trained in float32, and so are its states.
      for (int32_t i = 0; i < task.segments; ++i) {
        EXPECT_EQ(lossy.buffers[task.reads[i]].dtype, DataType::kFloat32);
        EXPECT_EQ(lossy.buffers[task.reads[task.segments + i]].dtype, kLossySums);
      }
      for (BufferId id : task.writes) EXPECT_EQ(lossy.buffers[id].dtype, DataType::kFloat32);
    }
  }
}

TEST(GradientSums, WhatOneDeviceHasAloneIsNotRounded) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = input "labels" : i64[4]
%3 = matmul(%0, %1) : f32[4,4]
%4 = cross_entropy(%3, %2) : f32[]
output "loss" = %4
)");
  ScheduleOptions options = TrainingOptions(1);
  options.update.gradient_sums = kLossySums;
  const auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (const Buffer& buffer : schedule->buffers) EXPECT_NE(buffer.dtype, kLossySums);
}

// Micro-batches are summed where they are made, in float32.
TEST(GradientSums, MicroBatchesAreSummedBeforeTheyAreRounded) {
  for (const UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    Plan plan = MicroBatchPlan({.layers = 4, .stages = 2, .data = 2, .micro_batches = 2},
                               DataType::kFloat32);
    plan.update.method = method;
    plan.update.gradient_sums = kLossySums;
    const auto lowered = LowerPlan(plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const Schedule& schedule = lowered->schedule;
    EXPECT_EQ(CheckSchedule(lowered->mapped.graph, schedule), absl::OkStatus());
    int sums = 0;
    for (const Task& task : schedule.tasks) {
      if (SumsGradients(task) && task.of_weights) {
        ++sums;
        EXPECT_EQ(schedule.buffers[task.reads[0]].dtype, kLossySums);
      }
      if (task.kind == TaskKind::kAccumulate) {
        EXPECT_EQ(schedule.buffers[task.writes[0]].dtype, DataType::kFloat32);
      }
    }
    // ZeRO 3's are reversals of gathers, which are of weights, too.
    EXPECT_TRUE(sums > 0 || method == UpdateMethod::kShardedWeights);
  }
}

std::string VerdictOnSums(DataType sums, UpdateMethod method,
                          const std::function<void(Schedule*)>& change) {
  Schedule schedule = ReplicasSummedIn(sums, method, /*bucket_bytes=*/0);
  change(&schedule);
  return std::string(CheckSchedule(Parsed(kTwoReplicas), schedule).message());
}

TEST(BrokenGradientSums, AreInAnotherTypeThanThePlanSays) {
  for (const UpdateMethod method : kMethodsOfSums) {
    SCOPED_TRACE(UpdateMethodName(method));
    const auto says = [&](DataType sums, DataType said) {
      return VerdictOnSums(sums, method,
                           [said](Schedule* s) { s->options.update.gradient_sums = said; });
    };
    EXPECT_EQ(says(kLossySums, kLossySums), "");
    // A plan that allows no loss does not get any,
    EXPECT_THAT(says(kLossySums, kExactSums), AnyOf(HasSubstr("in another type than the plan says"),
                                                    HasSubstr("is the gradient of no buffer")));
    // and one that allows it, and counts on it, gets what it says.
    EXPECT_THAT(says(kExactSums, kLossySums), HasSubstr("in another type than the plan says"));
  }
}

TEST(BrokenGradientSums, RoundWhatIsNoWeights) {
  // The gradient that the ReLU's call reads, and that which it makes.
  for (const int node : {9, 10}) {
    EXPECT_THAT(VerdictOnSums(kLossySums, UpdateMethod::kAllReduce,
                              [node](Schedule* s) {
                                for (Buffer& buffer : s->buffers) {
                                  if (buffer.role == BufferRole::kGradient &&
                                      buffer.tensor.node.value == node) {
                                    buffer.dtype = kLossySums;
                                  }
                                }
                              }),
                HasSubstr("is in lower precision, and not of a parameter"))
        << node;
  }
}

// Every buffer of every task, in the other precision.
TEST(BrokenGradientSums, AnyBufferInTheOtherPrecisionIsRefused) {
  for (const UpdateMethod method : kMethodsOfSums) {
    const Schedule original = ReplicasSummedIn(kLossySums, method);
    const Graph graph = Parsed(kTwoReplicas);
    for (size_t id = 0; id < original.buffers.size(); ++id) {
      const DataType dtype = original.buffers[id].dtype;
      if (!IsFloat(dtype)) continue;
      Schedule mutant = original;
      mutant.buffers[id].dtype = dtype == kLossySums ? DataType::kFloat32 : kLossySums;
      EXPECT_FALSE(CheckSchedule(graph, mutant).ok())
          << UpdateMethodName(method) << ": buffer " << id << "\n"
          << original.ToString(graph);
    }
  }
}

}  // namespace
}  // namespace isomer
