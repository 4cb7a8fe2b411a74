#include "pcg/schedule/order/execution_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

// Two branches, a (nodes 2 to 6) and b (7 to 11), with an all-gather in each.
constexpr char kBranches[] = R"(
%0 = input "x" : f32[4,8]
%1 = partition(%0) {axis=0, degree=2} : f32[4:2,8]
%2 = relu(%1) : f32[4:2,8]
%3 = combine(%2) {axis=0, degree=2} : f32[4,8]
%4 = replicate(%3) {degree=2} : f32[4,8] c2
%5 = relu(%4) : f32[4,8] c2
%6 = relu(%5) : f32[4,8] c2
%7 = relu(%1) : f32[4:2,8]
%8 = combine(%7) {axis=0, degree=2} : f32[4,8]
%9 = replicate(%8) {degree=2} : f32[4,8] c2
%10 = relu(%9) : f32[4,8] c2
%11 = add(%6, %10) : f32[4,8] c2
output "y" = %11
)";

std::vector<int> ComputedOnDevice0(const Graph& graph, bool interleave) {
  ScheduleOptions options;
  options.training = false;
  options.num_devices = 2;
  const auto schedule = LowerInOrder(graph, ViewsOf(graph, {}), options, interleave);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  std::vector<int> nodes;
  for (int32_t t : schedule->programs[0]) {
    const Task& task = schedule->tasks[t];
    if (task.kind == TaskKind::kCompute) nodes.push_back(task.node.value);
  }
  return nodes;
}

TEST(ExecutionOrder, OneBranchIsComputedWhileTheOtherIsExchanged) {
  const Graph graph = Parsed(kBranches);
  EXPECT_EQ(ComputedOnDevice0(graph, true), (std::vector<int>{2, 7, 5, 6, 10, 11}));
  EXPECT_EQ(ComputedOnDevice0(graph, false), (std::vector<int>{2, 5, 6, 7, 10, 11}));
}

TEST(ExecutionOrder, ShortBranchesAreSpreadBetweenTheExchangesOfALongOne) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4]
%1 = relu(%0) : f32[4]
%2 = sigmoid(%1) : f32[4]
%3 = relu(%2) : f32[4]
%4 = sigmoid(%3) : f32[4]
%5 = relu(%4) : f32[4]
%6 = sigmoid(%5) : f32[4]
%7 = relu(%6) : f32[4]
%8 = tanh(%0) : f32[4]
%9 = sigmoid(%8) : f32[4]
%10 = tanh(%9) : f32[4]
%11 = exp(%0) : f32[4]
%12 = add(%7, %10) : f32[4]
%13 = add(%12, %11) : f32[4]
output "y" = %13
)");
  // As if they were exchanges: three after each other in the branch of %1, one in that of %8.
  std::vector<bool> is_move(graph.num_nodes(), false);
  const std::vector<bool> is_fused = is_move;
  is_move[2] = is_move[4] = is_move[6] = is_move[9] = true;
  const auto calls = [&](bool spread) {
    std::vector<int> ids;
    for (NodeId id : ExecutionOrder(graph, graph.TopologicalOrder(), is_move, is_fused, spread)) {
      if (id.value > 0 && !is_move[id.value]) ids.push_back(id.value);
    }
    return ids;
  };
  EXPECT_EQ(calls(false), (std::vector<int>{1, 8, 11, 3, 10, 5, 7, 12, 13}));
  EXPECT_EQ(calls(true), (std::vector<int>{1, 8, 3, 10, 5, 11, 7, 12, 13}));
}

TEST(ExecutionOrder, KeepsGraphsWithoutExchanges) {
  const Graph graph = Parsed(kMlp);
  const std::vector<bool> none(graph.num_nodes(), false);
  const std::vector<NodeId> order = graph.TopologicalOrder();
  EXPECT_EQ(ExecutionOrder(graph, order, none, none), order);
}

// What is made of a weight (%7) would take memory from the beginning, and its gradient to the end.
TEST(ExecutionOrder, WhatIsMadeOfWeightsWaitsForItsFirstUser) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[4,8]
%1 = weight "w" : f32[8,8]
%2 = weight "v" : f32[8,8]
%3 = partition(%0) {axis=0, degree=2} : f32[4:2,8]
%4 = replicate(%1) {degree=2} : f32[8,8] c2
%5 = replicate(%2) {degree=2} : f32[8,8] c2
%6 = tanh(%4) : f32[8,8] c2
%7 = tanh(%5) : f32[8,8] c2
%8 = matmul(%3, %6) : f32[4:2,8]
%9 = combine(%8) {axis=0, degree=2} : f32[4,8]
%10 = replicate(%9) {degree=2} : f32[4,8] c2
%11 = matmul(%10, %7) : f32[4,8] c2
output "y" = %11
)");
  std::vector<bool> is_move(graph.num_nodes(), false), is_fused = is_move;
  is_move[9] = is_move[10] = is_fused[9] = true;
  std::vector<int> calls;
  for (NodeId id : ExecutionOrder(graph, graph.TopologicalOrder(), is_move, is_fused)) {
    const OpKind kind = graph.node(id).op.kind();
    if (!IsLeaf(kind) && !IsParallel(kind)) calls.push_back(id.value);
  }
  EXPECT_EQ(calls, (std::vector<int>{6, 8, 7, 11}));
}

}  // namespace
}  // namespace isomer
