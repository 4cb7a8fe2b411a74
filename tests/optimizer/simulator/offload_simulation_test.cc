// Copies to the host and back take the time of the bus, behind computation where there is enough.
#include <gtest/gtest.h>

#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/machine/machine.h"
#include "optimizer/simulator/simulator.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

constexpr double kGiB = 1 << 30;

// 64 layers of a product and a tanh on eight H100, in bfloat16, by Adam in shards: results that are
// kept, computed again but for every eighth, or offloaded.
class OffloadSimulation : public testing::Test {
 protected:
  Plan PlanOf(int64_t width) const {
    const StagedMlp mlp{.layers = 64,
                        .stages = 1,
                        .data = 8,
                        .micro_batches = 1,
                        .batch = int64_t{8} * 16384,
                        .width = width};
    const MappedGraph mapped = MakePipeline(mlp).mapped;
    Plan plan;
    plan.model.loss = "loss";
    plan.graph = mapped.graph;
    plan.views = mapped.views;
    plan.num_devices = 8;
    plan.precision = DataType::kBFloat16;
    plan.update.optimizer = OptimizerKind::kAdam;
    plan.update.method = UpdateMethod::kSharded;
    return plan;
  }

  static std::vector<NodeId> Tanhs(const Graph& graph) {
    std::vector<NodeId> nodes;
    for (NodeId id : ComputedNodes(graph)) {
      if (graph.node(id).op.kind() == OpKind::kTanh) nodes.push_back(id);
    }
    return nodes;
  }

  static std::vector<NodeId> AllButEveryEighth(const Graph& graph) {
    std::vector<NodeId> nodes;
    int layer = 0;
    for (NodeId id : ComputedNodes(graph)) {
      const OpKind kind = graph.node(id).op.kind();
      const bool is_end = kind == OpKind::kTanh && ++layer % 8 == 0;
      if (!is_end && (kind == OpKind::kTanh || kind == OpKind::kMatMul)) nodes.push_back(id);
    }
    return nodes;
  }

  Simulation Simulated(Plan plan, double host_bytes_per_us = 0) const {
    auto machine = LoadMachine("dgx_h100", 1, 8);
    EXPECT_TRUE(machine.ok()) << machine.status();
    if (host_bytes_per_us > 0) machine->kinds[0].host_bytes_per_us = host_bytes_per_us;
    const auto simulation = PredictPlan(CostModel(*machine), &plan);
    EXPECT_TRUE(simulation.ok()) << simulation.status();
    return *simulation;
  }
};

TEST_F(OffloadSimulation, WideLayersHideIt) {
  const Plan plan = PlanOf(16384);
  Plan again = plan, away = plan;
  again.recomputed = AllButEveryEighth(plan.graph);
  away.offloaded = Tanhs(plan.graph);
  const Simulation kept = Simulated(plan), recomputed = Simulated(again),
                   offloaded = Simulated(away);
  EXPECT_GT(static_cast<double>(kept.peak_bytes), 90 * kGiB);
  EXPECT_LT(static_cast<double>(recomputed.peak_bytes), 75 * kGiB);
  EXPECT_LT(static_cast<double>(offloaded.peak_bytes), 75 * kGiB);
  EXPECT_GT(recomputed.step_us, 1.25 * kept.step_us);
  EXPECT_LT(offloaded.step_us, 1.001 * kept.step_us);
}

TEST_F(OffloadSimulation, ASlowBusIsWaitedFor) {
  Plan plan = PlanOf(8192);
  const double kept_us = Simulated(plan).step_us;
  plan.offloaded = Tanhs(plan.graph);
  const double fast_us = Simulated(plan, 63e3).step_us, slow_us = Simulated(plan, 6.3e3).step_us;
  EXPECT_GT(fast_us, kept_us);
  EXPECT_LT(fast_us, 1.1 * kept_us);
  EXPECT_GT(slow_us, 3 * kept_us);
}

}  // namespace
}  // namespace isomer
