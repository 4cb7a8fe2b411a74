// A machine whose devices do one thing at a time: what is communicated is not hidden.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// Data parallel on two devices: the gradient of a layer is summed while the one before it computes.
MappedGraph TwoLayers() {
  MappedGraph mapped;
  Graph& g = mapped.graph;
  const auto call = [&g](Operator op, std::vector<TensorRef> inputs) {
    return g.AddOp(std::move(op), std::move(inputs)).value();
  };
  TensorRef h = call(Partition(0, 2), {g.AddInput("x", SequentialType({64, 512}))});
  for (const char* name : {"first", "second"}) {
    const TensorRef w = g.AddWeight(name, SequentialType({512, 512}));
    h = call(OpKind::kRelu, {call(OpKind::kMatMul, {h, call(Replicate(2), {w})})});
  }
  const TensorRef target = g.AddInput("target", SequentialType({64, 512}));
  const TensorRef error = call(OpKind::kMeanSquaredError, {h, call(Partition(0, 2), {target})});
  g.AddOutput("loss", call(Reduce(2), {error}));
  for (int id = 0; id < g.num_nodes(); ++id) {
    mapped.views.push_back(RowMajorView(g.node(id).outputs[0]));
  }
  return mapped;
}

TEST(OneStream, AStepIsTheSumOfItsTasks) {
  const MappedGraph mapped = TwoLayers();
  const auto schedule = LowerGraph(mapped.graph, mapped.views, {.num_devices = 2, .loss = "loss"});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  Machine machine = TestMachine(1, 2);
  const Simulation beside = Simulate(CostModel(machine), mapped.graph, *schedule);
  machine.one_stream = true;
  const Simulation alone = Simulate(CostModel(machine), mapped.graph, *schedule);
  EXPECT_NEAR(alone.step_us, alone.compute_us + alone.communication_us, 1e-3);
  EXPECT_LT(beside.step_us, alone.step_us);
  EXPECT_GE(beside.step_us, std::max(beside.compute_us, beside.communication_us));
}

}  // namespace
}  // namespace isomer
