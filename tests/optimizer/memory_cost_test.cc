#include "optimizer/memory_cost.h"

#include <gtest/gtest.h>

#include "pcg/operator.h"
#include "pcg/plan.h"
#include "pcg/schedule/memory.h"

namespace isomer {
namespace {

TEST(BytesPerDevice, AddsTheLargestMeasuredWorkspaceToTheArena) {
  Graph graph;
  const TensorType type = SequentialType({64, 64});
  const TensorRef x = graph.AddInput("x", type), w = graph.AddWeight("w", type);
  const TensorRef h = graph.AddOp(OpKind::kMatMul, {x, w}).value();
  graph.AddOutput("y", graph.AddOp(OpKind::kRelu, {h}).value());
  const auto schedule = LowerGraph(graph, SequentialViews(graph), {.training = false, .loss = ""});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::vector<int64_t> arena = PlanMemory(*schedule).arena_bytes;
  EXPECT_EQ(BytesPerDevice(nullptr, graph, *schedule), arena);

  Profile profile;
  const std::vector<TensorType> operands = {type, type};
  profile.kernels[KernelKey(OpKind::kMatMul, operands, {})].workspace_bytes = 1000;
  profile.kernels[KernelKey(OpKind::kRelu, {operands.data(), 1}, {})].workspace_bytes = 10;
  // Of a gradient, which inference does not run.
  profile.kernels[KernelKey(OpKind::kMatMul, operands, {true, true})].workspace_bytes = 5000;
  EXPECT_EQ(BytesPerDevice(&profile, graph, *schedule), std::vector<int64_t>{arena[0] + 1000});
}

}  // namespace
}  // namespace isomer
