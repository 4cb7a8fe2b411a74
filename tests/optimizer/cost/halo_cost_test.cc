// Convolutions of large images: what halos cost, and that the search partitions the image.
#include "optimizer/cost/halo_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "optimizer/search/optimizer.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/packing.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

Operator Conv3x3() {
  return Operator(OpKind::kConv2d, {{"stride", Ints{1, 1}},
                                    {"padding", Ints{1, 1, 1, 1}},
                                    {"dilation", Ints{1, 1}},
                                    {"groups", int64_t{1}}});
}

// One picture, a stack of convolutions, and a pool.
Model Picture(int64_t size, int64_t channels) {
  Model model;
  model.name = "picture";
  Graph& g = model.graph;
  TensorRef x = g.AddInput("x", SequentialType({1, channels, size, size}));
  for (const char* name : {"a", "b", "c"}) {
    const TensorRef w = g.AddWeight(name, SequentialType({channels, channels, 3, 3}));
    x = g.AddOp(Conv3x3(), {x, w}, std::string(name) + "/conv").value();
    x = g.AddOp(OpKind::kRelu, {x}, std::string(name) + "/relu").value();
  }
  const Operator pool(
      OpKind::kMaxPool,
      {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1, 0, 0}}});
  x = g.AddOp(pool, {x}, "pool").value();
  const TensorRef target = g.AddInput("target", g.type(x));
  g.AddOutput("loss", g.AddOp(OpKind::kMeanSquaredError, {x, target}, "loss").value());
  model.loss = "loss";
  return model;
}

absl::StatusOr<Schedule> Lowered(const Plan& plan) {
  ScheduleOptions options;
  options.num_devices = plan.num_devices;
  options.loss = plan.model.loss;
  return LowerGraph(plan.graph, plan.views, options);
}

TEST(HaloCost, IsThatOfTheScheduledExchange) {
  const Operator conv = Conv3x3();
  const std::vector<TensorType> logical = {SequentialType({2, 4, 16, 16}),
                                           SequentialType({6, 4, 3, 3})};
  for (const auto& [nodes, devices] : {std::pair<int64_t, int64_t>{1, 4}, {2, 2}}) {
    const CostModel cost(TestMachine(nodes, devices));
    // Iteration dims: n, o, c, y, x.
    for (const Ints& degrees : {Ints{1, 1, 1, 4, 1}, Ints{1, 1, 1, 2, 2}, Ints{1, 1, 1, 1, 2}}) {
      const auto types = OperandTypesFor(conv, logical, degrees);
      ASSERT_TRUE(types.ok()) << types.status();
      const auto sharding = InferSharding(conv, *types);
      ASSERT_TRUE(sharding.ok());
      Graph graph;
      std::vector<TensorRef> operands;
      for (const TensorType& type : *types) {
        operands.push_back(graph.AddInput("x" + std::to_string(operands.size()), type));
      }
      graph.AddOutput("y", graph.AddOp(conv, operands).value());
      std::vector<MachineView> views;
      for (int i = 0; i < graph.num_nodes(); ++i) {
        views.push_back(RowMajorView(graph.node(i).outputs[0]));
      }
      ScheduleOptions options;
      options.training = false;
      options.num_devices = nodes * devices;
      const auto schedule = LowerGraph(graph, views, options);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      double us = 0;  // but for what is packed, which depends on layouts
      for (const Task& task : schedule->tasks) {
        if (!IsCommunication(task.kind)) continue;
        const PackBytes packed = MostPacked(*schedule, task);
        us = std::max(
            us, TaskUs(cost, graph, *schedule, task) - cost.PackingUs(packed.send, packed.receive));
      }
      const HaloCost halo = CostOfHalo(cost, *sharding, 0, {(*types)[0], views[0]});
      EXPECT_GT(us, 0);
      EXPECT_NEAR(halo.us, us, 1e-9);
      EXPECT_GT(halo.bytes, (*types)[0].LocalBytes());
      EXPECT_EQ(CostOfHalo(cost, *sharding, 1, {(*types)[1], views[1]}).us, 0);
    }
  }
}

TEST(HaloCost, PiecesWithoutHaloCostNothing) {
  const CostModel cost(TestMachine(1, 4));
  const Operator conv = Conv3x3();
  const auto types = OperandTypesFor(
      conv, {SequentialType({8, 4, 16, 16}), SequentialType({6, 4, 3, 3})}, {4, 1, 1, 1, 1});
  const auto sharding = InferSharding(conv, *types);
  ASSERT_TRUE(sharding.ok());
  const HaloCost halo = CostOfHalo(cost, *sharding, 0, {(*types)[0], RowMajorView((*types)[0])});
  EXPECT_EQ(halo.us, 0);
  EXPECT_EQ(halo.bytes, 0);
}

TEST(SpatialSearch, OneLargePictureIsPartitionedOverItsRowsOrColumns) {
  const Model model = Picture(256, 16);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 4));
  const auto result = Optimize(model, index, cost, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Plan& plan = result->plan;
  int windows = 0, over_pixels = 0;
  for (int i = 0; i < plan.graph.num_nodes(); ++i) {
    const Node& node = plan.graph.node(i);
    if (node.op.kind() != OpKind::kConv2d && node.op.kind() != OpKind::kMaxPool) continue;
    const TensorType& x = plan.graph.type(node.inputs[0]);
    over_pixels += x.dims[2].degree * x.dims[3].degree == 4;
    ++windows;
  }
  EXPECT_EQ(windows, 4);
  EXPECT_GE(over_pixels, 3);  // the last, of 16 channels, may be split otherwise
  // The one sample leaves nothing to data parallelism.
  EXPECT_LT(plan.predicted_step_us, result->baselines.at(kDataParallel).step_us / 2);
  const auto lowered = Lowered(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(plan.graph, *lowered), absl::OkStatus());
}

// Links so slow that no exchange pays.
TEST(SpatialSearch, HalosThatCostTooMuchAreAvoided) {
  const Model model = Picture(8, 4);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  Machine machine = TestMachine(1, 2);
  machine.levels[0].latency_us = 1000;
  const CostModel cost(machine);
  const auto result = Optimize(model, index, cost, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const auto lowered = Lowered(result->plan);
  ASSERT_TRUE(lowered.ok());
  const Schedule& schedule = *lowered;
  for (const Task& task : schedule.tasks) {
    for (BufferId id : task.reads) {
      if (id == kNoBuffer || task.kind != TaskKind::kCompute) continue;
      EXPECT_NE(schedule.buffers[id].role, BufferRole::kReceived);
    }
  }
}

}  // namespace
}  // namespace isomer
