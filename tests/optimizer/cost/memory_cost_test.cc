#include "optimizer/cost/memory_cost.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "optimizer/cost/workspace.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

TEST(PredictMemory, TakesWhatWasMeasured) {
  Graph graph;
  const TensorType type = SequentialType({64, 64});
  const TensorRef x = graph.AddInput("x", type), w = graph.AddWeight("w", type);
  const TensorRef h = graph.AddOp(OpKind::kMatMul, {x, w}).value();
  graph.AddOutput("y", graph.AddOp(OpKind::kRelu, {h}).value());
  const auto schedule = LowerGraph(graph, SequentialViews(graph), {.training = false, .loss = ""});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const auto workspaces = [&](const Profile* profile) {
    Schedule with = *schedule;
    const PredictedMemory memory =
        PredictMemory(profile, graph, /*cores=*/false, /*num_queues=*/1, &with);
    std::vector<int64_t> bytes = {memory.bytes_per_device[0] - memory.plan.arena_bytes[0]};
    for (const Task& task : with.tasks) {
      if (IsOfKernel(task.kind)) bytes.push_back(task.workspace_bytes);
    }
    return bytes;
  };
  EXPECT_EQ(workspaces(nullptr), (std::vector<int64_t>{0, 0, 0}));

  Profile profile;
  const std::vector<TensorType> operands = {type, type};
  profile.kernels[KernelKey(OpKind::kMatMul, operands, {})].workspace_bytes = 1000;
  profile.kernels[KernelKey(OpKind::kMatMul, operands, {})].library_bytes = 300;
  profile.kernels[KernelKey(OpKind::kRelu, {operands.data(), 1}, {})].workspace_bytes = 10;
  // Of a gradient, which inference does not run.
  profile.kernels[KernelKey(OpKind::kMatMul, operands, {true, true})].library_bytes = 5000;
  EXPECT_EQ(workspaces(&profile), (std::vector<int64_t>{300, 1000, 10}));
}

// LeNet's convolutions, as profiled: 12.9 MB forward, 12.9 MB and 4.98 MB for the gradients.
TEST(BytesOnCore, OfConvolutionsOfRowMajorImagesIsThatOfBlockedCopies) {
  Graph graph;
  const Operator convolution(OpKind::kConv2d, {{"stride", std::vector<int64_t>{1, 1}},
                                               {"padding", std::vector<int64_t>{0, 0, 0, 0}},
                                               {"dilation", std::vector<int64_t>{1, 1}},
                                               {"groups", int64_t{1}}});
  const auto call = [&](std::vector<int64_t> x, std::vector<int64_t> w) {
    const TensorRef operand = graph.AddInput("x", SequentialType(std::move(x)));
    const TensorRef filter = graph.AddWeight("w", SequentialType(std::move(w)));
    return graph.node(graph.AddOp(convolution, {operand, filter}).value().node);
  };
  const Node first = call({256, 1, 32, 32}, {6, 1, 5, 5});
  const Node second = call({256, 6, 14, 14}, {16, 6, 5, 5});
  const auto workspace = [&](const Node& node, const std::vector<bool>& wanted) {
    return static_cast<double>(BytesOnCore(graph, node, wanted, {}).workspace);
  };
  EXPECT_NEAR(workspace(first, {}), 12906296, 2e5);
  EXPECT_NEAR(workspace(first, {false, true}), 12888976, 2e5);
  EXPECT_NEAR(workspace(second, {}), 1688344, 2e5);
  EXPECT_NEAR(workspace(second, {true, true}), 4977648, 2e5);
}

// Of 12 x 72 x 10 x 14 by windows of 4 x 4, two apart: 2.15 MB of the result in blocks, and 0.54 MB
// of the operand; isomer-run allots 3.1 MB, with the weights.
TEST(BytesOnCore, OfTransposedConvolutionsIsThatOfBlockedCopies) {
  Graph graph;
  const Operator transposed(OpKind::kConvTranspose, {{"stride", std::vector<int64_t>{2, 2}},
                                                     {"padding", std::vector<int64_t>{1, 1, 1, 1}},
                                                     {"dilation", std::vector<int64_t>{1, 1}},
                                                     {"output_padding", std::vector<int64_t>{0, 0}},
                                                     {"groups", int64_t{1}}});
  const TensorRef x = graph.AddInput("x", SequentialType({12, 72, 10, 14}));
  const TensorRef w = graph.AddWeight("w", SequentialType({72, 72, 4, 4}));
  const Node node = graph.node(graph.AddOp(transposed, {x, w}).value().node);
  for (const std::vector<bool>& wanted : {std::vector<bool>{}, std::vector<bool>{true, true}}) {
    const auto workspace = static_cast<double>(BytesOnCore(graph, node, wanted, {}).workspace);
    EXPECT_NEAR(workspace, 3.1e6, 0.5e6);
  }
}

}  // namespace
}  // namespace isomer
