// Calls that move nothing.
#include "pcg/schedule/memory/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/check/check.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// By node and direction.
std::vector<std::string> ViewTasks(const Graph& graph, const Schedule& schedule) {
  std::vector<std::string> views;
  for (const Task& task : schedule.tasks) {
    if (!task.is_view) continue;
    views.push_back(std::string(graph.node(task.node).op.name()) +
                    (task.kind == TaskKind::kComputeGradient ? " backward"
                     : task.kind == TaskKind::kAccumulate    ? " adds"
                                                             : ""));
  }
  return views;
}

constexpr char kViewChain[] = R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[8,1,4,4]
%3 = matmul(%0, %1) : f32[8,16]
%4 = reshape(%3) {shape=[8,4,4,1]} : f32[8,4,4,1]
%5 = transpose(%4) {perm=[0,3,1,2]} : f32[8,1,4,4]
%6 = mse(%5, %2) : f32[]
output "loss" = %6
)";

TEST(Views, ChainsAreOnePieceOfMemory) {
  const Graph graph = Parsed(kViewChain);
  const Schedule schedule = LoweredOn(graph, 1);
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  EXPECT_EQ(
      ViewTasks(graph, schedule),
      (std::vector<std::string>{"reshape", "transpose", "transpose backward", "reshape backward"}));
  const std::vector<BufferId> holders = HoldersOf(schedule);
  const MemoryPlan memory = PlanMemory(schedule);
  const auto buffer = [&](int node) { return schedule.shards.at({NodeId{node}, 0})[0]; };
  EXPECT_EQ(holders[buffer(5)], buffer(3));
  EXPECT_EQ(memory.offsets[buffer(4)], memory.offsets[buffer(3)]);
  // x, w, target, the product and the loss, and the gradients of the two last.
  EXPECT_EQ(LargestPeak(schedule).bytes, 4 * (32 + 64 + 128 + 128 + 1 + 128 + 1));
}

TEST(Views, WhatMovesIsNone) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[16,8]
%3 = matmul(%0, %1) : f32[8,16]
%4 = transpose(%3) {perm=[1,0]} : f32[16,8]
%5 = mse(%4, %2) : f32[]
output "loss" = %5
)");
  EXPECT_TRUE(ViewTasks(graph, LoweredOn(graph, 1)).empty());
}

// A weight is updated in place.
TEST(Views, WeightsAreKeptApart) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[8,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = reshape(%1) {shape=[16,4]} : f32[16,4]
%5 = matmul(%3, %4) : f32[8,4]
%6 = matmul(%5, %1) : f32[8,16]
%7 = mse(%6, %2) : f32[]
output "loss" = %7
)");
  const Schedule schedule = LoweredOn(graph, 1);
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  // Two shares of the weight's gradient are there, but not as views of it.
  for (const Task& task : schedule.tasks) {
    EXPECT_FALSE(task.is_view && task.kind != TaskKind::kAccumulate) << schedule.ToString(graph);
  }
}

// The gradient of the product has two shares: that of the reshape comes first, and the other is
// added where it lies, when nobody needs what lay there.
TEST(Views, SharesOfAGradientAreAddedInPlace) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[8,16]
%3 = matmul(%0, %1) : f32[8,16]
%4 = tanh(%3) : f32[8,16]
%5 = reshape(%3) {shape=[16,8]} : f32[16,8]
%6 = exp(%5) : f32[16,8]
%7 = reshape(%6) {shape=[8,16]} : f32[8,16]
%8 = mul(%4, %7) : f32[8,16]
%9 = mse(%8, %2) : f32[]
output "loss" = %9
)");
  const Schedule schedule = LoweredOn(graph, 1);
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  EXPECT_EQ(ViewTasks(graph, schedule),
            (std::vector<std::string>{"reshape", "reshape", "reshape backward", "reshape backward",
                                      "tanh adds"}))
      << schedule.ToString(graph);
}

TEST(Views, OfPiecesOnSeveralDevices) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,16]
%2 = input "target" : f32[8,4,4]
%3 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%4 = replicate(%1) {degree=2} : f32[4,16] c2
%5 = matmul(%3, %4) : f32[8:2,16]
%6 = reshape(%5) {shape=[8,4,4]} : f32[8:2,4,4]
%7 = combine(%6) {axis=0, degree=2} : f32[8,4,4]
%8 = mse(%7, %2) : f32[]
output "loss" = %8
)");
  const Schedule schedule = LoweredOn(graph, 2);
  EXPECT_EQ(CheckSchedule(graph, schedule), absl::OkStatus());
  EXPECT_EQ(ViewTasks(graph, schedule).size(), 4u) << schedule.ToString(graph);
}

TEST(Views, FalseOnesAreRefused) {
  const Graph graph = Parsed(kViewChain);
  const Schedule schedule = LoweredOn(graph, 1);
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    if (schedule.tasks[t].is_view) continue;
    Schedule mutant = schedule;
    mutant.tasks[t].is_view = true;
    EXPECT_FALSE(CheckSchedule(graph, mutant).ok()) << "task " << t;
  }
  // The product is made again after its view, which is read then.
  Schedule late = schedule;
  const auto view = std::find_if(late.tasks.begin(), late.tasks.end(),
                                 [](const Task& task) { return task.is_view; });
  late.tasks.insert(view + 1, {.kind = TaskKind::kFill,
                               .phase = Phase::kForward,
                               .node = view->node,
                               .writes = {view->reads[0]}});
  EXPECT_THAT(std::string(CheckViews(graph, late).message()), HasSubstr("is overwritten"));
  MemoryPlan memory = PlanMemory(schedule);
  memory.offsets[schedule.shards.at({NodeId{4}, 0})[0]] += kAlignment;
  EXPECT_THAT(std::string(CheckMemory(schedule, memory).message()),
              HasSubstr("does not lie where"));
}

TEST(Views, DimsOfOneElementMayMove) {
  const auto keeps = [](std::vector<int64_t> perm, std::vector<int64_t> sizes) {
    return KeepsOrder({OpKind::kTranspose, {{"perm", std::move(perm)}}}, sizes);
  };
  EXPECT_TRUE(keeps({1, 0, 2}, {1, 8, 4}));
  EXPECT_TRUE(keeps({2, 0, 1}, {8, 4, 1}));
  EXPECT_FALSE(keeps({1, 0, 2}, {2, 8, 4}));
  EXPECT_FALSE(keeps({2, 1, 0}, {8, 1, 4}));
  EXPECT_TRUE(KeepsOrder({OpKind::kReshape, {{"shape", std::vector<int64_t>{8}}}}, {2, 4}));
  EXPECT_FALSE(KeepsOrder(Operator(OpKind::kRelu), {2, 4}));
}

}  // namespace
}  // namespace isomer
