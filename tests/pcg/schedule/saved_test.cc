// What tasks save for their gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// Two norms of one shape.
constexpr char kNorms[] = R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = weight "gamma" : f32[16]
%3 = weight "beta" : f32[16]
%4 = input "target" : f32[8,16]
%5 = matmul(%0, %1) : f32[8,16]
%6 = layer_norm(%5, %2, %3) {epsilon=1e-05} : f32[8,16]
%7 = matmul(%6, %1) : f32[8,16]
%8 = layer_norm(%7, %2, %3) {epsilon=1e-05} : f32[8,16]
%9 = mse(%8, %4) : f32[]
output "loss" = %9
)";

Schedule Lowered(const Graph& graph, bool training, std::vector<NodeId> recomputed = {}) {
  ScheduleOptions options;
  options.training = training;
  if (training) options.loss = "loss";
  options.recomputed = std::move(recomputed);
  auto schedule = LowerGraph(graph, SequentialViews(graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

std::vector<int32_t> TasksOf(const Schedule& schedule, TaskKind kind, int32_t node) {
  std::vector<int32_t> tasks;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind == kind && task.node.value == node) tasks.push_back(static_cast<int32_t>(t));
  }
  return tasks;
}

constexpr int32_t kFirst = 6, kSecond = 8;

TEST(Saved, AGradientReadsWhatItsTaskFound) {
  const Graph graph = Parsed(kNorms);
  const Schedule schedule = Lowered(graph, /*training=*/true);
  for (int32_t norm : {kFirst, kSecond}) {
    const Task& forward = schedule.tasks[TasksOf(schedule, TaskKind::kCompute, norm)[0]];
    const Task& gradient = schedule.tasks[TasksOf(schedule, TaskKind::kComputeGradient, norm)[0]];
    ASSERT_EQ(forward.writes.size(), 2u);
    EXPECT_EQ(gradient.reads.back(), forward.writes[1]);
    const Buffer& saved = schedule.buffers[forward.writes[1]];
    EXPECT_EQ(saved.role, BufferRole::kSaved);
    EXPECT_EQ(saved.bytes(), 8 * 2 * 4);  // per row the mean and 1 / the deviation
    EXPECT_EQ(forward.bytes, 2 * 8 * 16 * 4 + 2 * 16 * 4 + saved.bytes());
  }
  EXPECT_THAT(schedule.ToString(graph), HasSubstr("saved %6#0@0"));
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
}

TEST(Saved, NothingIsWhereThereIsNoGradient) {
  const Graph graph = Parsed(kNorms);
  for (const Buffer& buffer : Lowered(graph, /*training=*/false).buffers) {
    EXPECT_NE(buffer.role, BufferRole::kSaved);
  }
  // Of what no weight is in front of, and in front of no loss.
  const Graph aside = Parsed(R"(
%0 = input "x" : f32[8,16]
%1 = weight "w" : f32[16,16]
%2 = input "gamma" : f32[16]
%3 = input "target" : f32[8,16]
%4 = rms_norm(%0, %2) {epsilon=1e-05} : f32[8,16]
%5 = matmul(%4, %1) : f32[8,16]
%6 = rms_norm(%5, %2) {epsilon=1e-05} : f32[8,16]
%7 = mse(%5, %3) : f32[]
output "y" = %6
output "loss" = %7
)");
  for (const Buffer& buffer : Lowered(aside, /*training=*/true).buffers) {
    EXPECT_NE(buffer.role, BufferRole::kSaved);
  }
}

TEST(Saved, WhatRepeatsATaskSavesForIt) {
  const Graph graph = Parsed(kNorms);
  const Schedule schedule = Lowered(graph, /*training=*/true, {NodeId{kFirst}});
  const std::vector<int32_t> forward = TasksOf(schedule, TaskKind::kCompute, kFirst);
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_EQ(schedule.tasks[forward[0]].writes.size(), 1u);
  ASSERT_EQ(schedule.tasks[forward[1]].writes.size(), 2u);
  const auto gradient = TasksOf(schedule, TaskKind::kComputeGradient, kFirst);
  EXPECT_EQ(schedule.tasks[gradient[0]].reads.back(), schedule.tasks[forward[1]].writes[1]);
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
}

class SavedIsRefused : public testing::Test {
 protected:
  template <typename Change>
  std::string After(Change change) {
    Schedule schedule = Lowered(graph_, /*training=*/true);
    // Each task waits for all before it, so that it is not for a wait that a change is refused.
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      schedule.tasks[t].deps.clear();
      for (size_t before = 0; before < t; ++before) {
        schedule.tasks[t].deps.push_back(static_cast<int32_t>(before));
      }
    }
    change(&schedule);
    const absl::Status status = CheckSchedule(graph_, schedule);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }
  Task& Forward(Schedule* schedule, int32_t norm = kFirst) {
    return schedule->tasks[TasksOf(*schedule, TaskKind::kCompute, norm)[0]];
  }
  Task& Gradient(Schedule* schedule) {
    return schedule->tasks[TasksOf(*schedule, TaskKind::kComputeGradient, kFirst)[0]];
  }

  const Graph graph_ = Parsed(kNorms);
};

TEST_F(SavedIsRefused, OfAnotherCallAlike) {
  EXPECT_THAT(After([&](Schedule* s) { Gradient(s).reads.back() = Forward(s, kSecond).writes[1]; }),
              HasSubstr("does not read what the task that it reverses saved"));
}

TEST_F(SavedIsRefused, ByTwoCallsExchanged) {
  EXPECT_THAT(
      After([&](Schedule* s) { std::swap(Forward(s).writes[1], Forward(s, kSecond).writes[1]); }),
      HasSubstr("saves something else"));
}

TEST_F(SavedIsRefused, NotRead) {
  EXPECT_THAT(After([&](Schedule* s) { Gradient(s).reads.pop_back(); }),
              HasSubstr("has other operands"));
  EXPECT_THAT(After([&](Schedule* s) { Gradient(s).reads.back() = kNoBuffer; }),
              HasSubstr("does not read what"));
}

TEST_F(SavedIsRefused, NotWritten) {
  EXPECT_THAT(After([&](Schedule* s) { Forward(s).writes.pop_back(); }),
              HasSubstr("before it is written"));
}

TEST_F(SavedIsRefused, InAnotherPlaceOrType) {
  EXPECT_THAT(After([&](Schedule* s) { s->buffers[Forward(s).writes[1]].box.shape = {15}; }),
              HasSubstr("saves something else"));
  EXPECT_THAT(
      After([&](Schedule* s) { s->buffers[Forward(s).writes[1]].dtype = DataType::kBFloat16; }),
      HasSubstr("saves something else"));
  EXPECT_THAT(
      After([&](Schedule* s) { s->buffers[Forward(s).writes[1]].role = BufferRole::kActivation; }),
      HasSubstr("saves something else"));
}

// A value of the network is none that is saved, nor the other way round.
TEST_F(SavedIsRefused, TakenForAValue) {
  EXPECT_THAT(After([&](Schedule* s) { Forward(s, kSecond).reads[0] = Forward(s).writes[1]; }),
              HasSubstr("operand 0 is not"));
  EXPECT_THAT(After([&](Schedule* s) { Gradient(s).reads.back() = Forward(s).writes[0]; }),
              HasSubstr("does not read what"));
}

TEST_F(SavedIsRefused, ByACallThatSavesNothing) {
  EXPECT_THAT(After([&](Schedule* s) {
                Buffer more = s->buffers[Forward(s).writes[1]];
                more.tensor = {NodeId{5}, 0};
                s->buffers.push_back(more);
                Forward(s, 5).writes.push_back(static_cast<BufferId>(s->buffers.size() - 1));
              }),
              HasSubstr("saves something else"));
}

}  // namespace
}  // namespace isomer
