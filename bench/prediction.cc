// How long is a prediction, and how large? Lowering, simulation and memory of one plan:
//
//   prediction MODEL PRESET NODES BATCH PLAN [STAGES MICRO_BATCHES]
//
// MODEL: of the zoo, or chain: so many operators as BATCH says, one after the other.
//
// On more than 64 devices one of each class is simulated; up to 1024 this is compared with the
// simulation of all.
//
// PLAN: single_device, data_parallel, megatron, or grid: Megatron-LM's tensor parallelism within
// nodes, STAGES of neighbouring calls, and data parallelism over what is left, in MICRO_BATCHES.
// Stages have as many calls each; a search would balance them, and this asks only what the
// prediction costs.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/resources.h"
#include "bench/zoo_training.h"
#include "optimizer/cost/memory_cost.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/data_path.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Request {
  std::string model, machine, plan;
  int64_t nodes = 1, batch = 1, stages = 1, micro_batches = 1;
};

// The stage of every node: calls by their place in topological order; what parallel operators make
// from calls stays there, leaves are where they are first used.
std::vector<int64_t> StagesOfNodes(const Graph& graph, int64_t stages) {
  std::vector<NodeId> calls;
  const std::vector<NodeId> order = graph.TopologicalOrder();
  for (NodeId id : order) {
    const OpKind kind = graph.node(id).op.kind();
    if (!IsLeaf(kind) && !IsParallel(kind)) calls.push_back(id);
  }
  constexpr int64_t kNowhere = -1;
  std::vector<int64_t> stage(graph.num_nodes(), kNowhere);
  for (size_t i = 0; i < calls.size(); ++i) {
    stage[calls[i].value] = static_cast<int64_t>(i) * stages / static_cast<int64_t>(calls.size());
  }
  for (NodeId id : order) {
    const auto& inputs = graph.node(id).inputs;
    if (stage[id.value] == kNowhere && !inputs.empty()) {
      stage[id.value] = stage[inputs[0].node.value];
    }
  }
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (stage[id->value] != kNowhere) continue;
    stage[id->value] = users[id->value].empty() ? 0 : stages - 1;
    for (const Graph::Use& use : users[id->value]) {
      stage[id->value] = std::min(stage[id->value], stage[use.user.value]);
    }
  }
  return stage;
}

// Linear layers with ReLU, and an mse.
absl::StatusOr<Model> ChainModel(int64_t operators) {
  Model model;
  model.name = "chain";
  model.loss = "loss";
  const TensorType type = SequentialType({64, 64});
  const TensorRef target = model.graph.AddInput("target", type);
  TensorRef x = model.graph.AddInput("x", type);
  for (int64_t i = 0; i < operators / 2; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const TensorRef weight = model.graph.AddWeight(name + "/w", type);
    ISOMER_ASSIGN_OR_RETURN(x, model.graph.AddOp(OpKind::kMatMul, {x, weight}, name));
    ISOMER_ASSIGN_OR_RETURN(x, model.graph.AddOp(OpKind::kRelu, {x}, name + "/relu"));
  }
  ISOMER_ASSIGN_OR_RETURN(x, model.graph.AddOp(OpKind::kMeanSquaredError, {x, target}, "loss"));
  model.graph.AddOutput("loss", x);
  return model;
}

absl::StatusOr<Model> LoadModelOf(const Request& request) {
  if (request.model == "chain") return ChainModel(request.batch);
  return TrainedInZoo(request.model, request.batch);
}

absl::StatusOr<Plan> MakePlan(const Request& request, const Model& model, const RuleIndex& rules,
                              const Machine& machine) {
  const bool grid = request.plan == "grid";
  if (grid && (request.stages < 1 || machine.num_nodes() % request.stages != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.stages, " stages do not share out ", machine.num_nodes(), " nodes"));
  }
  const int64_t pieces = machine.num_nodes() / request.stages * request.micro_batches;
  if (grid && (pieces < 1 || request.batch % pieces != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", request.batch, " is not cut into ", request.micro_batches,
                     " micro-batches on ", machine.num_nodes() / request.stages, " nodes"));
  }
  Machine moments = machine;  // A micro-batch is a shard in time (pcg/ir/machine_view.h).
  if (grid) {
    moments.levels.back().count = pieces;
  }
  const CostModel cost(std::move(moments));
  CostTables tables(rules, cost, {.training = true, .halves = false});
  ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                          MapBaseline(grid ? kMegatron : request.plan, model.graph, &tables));
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, /*training=*/true, &tables));
  plan.num_devices = machine.num_devices();
  if (!grid) return plan;
  const int64_t node = machine.devices_per_node();
  const std::vector<int64_t> stage = StagesOfNodes(plan.graph, request.stages);
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    MachineView& view = plan.views[id];
    view.start += stage[id] * machine.num_devices() / request.stages;
    const std::vector<int64_t> extents = AxisExtents(plan.graph.node({id}).outputs[0]);
    for (size_t axis = 0; axis < view.strides.size(); ++axis) {
      if (view.strides[axis] * extents[axis] <= node) continue;  // within a node
      if (view.moments.empty()) view.moments.assign(view.strides.size(), 1);
      view.moments[axis] = request.micro_batches;
    }
  }
  return plan;
}

absl::Status Measure(const Request& request) {
  ISOMER_ASSIGN_OR_RETURN(const Model model, LoadModelOf(request));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  ISOMER_ASSIGN_OR_RETURN(Machine machine, LoadMachine(request.machine, request.nodes));
  double before = CpuSeconds();
  ISOMER_ASSIGN_OR_RETURN(Plan plan, MakePlan(request, model, index, machine));
  const double made = CpuSeconds() - before;
  const int64_t devices = machine.num_devices();
  const CostModel cost(std::move(machine));
  std::printf("%s on %ld devices, %s: %d nodes, made in %.2f s CPU, %.2f GiB\n",
              request.model.c_str(), devices, request.plan.c_str(), plan.graph.num_nodes(), made,
              PeakGib());
  for (int run = 0; run < 3; ++run) {
    before = CpuSeconds();
    ISOMER_ASSIGN_OR_RETURN(const Simulation simulation, PredictPlan(cost, &plan));
    std::printf(
        "prediction: %.4f s CPU, %ld devices, %d tasks, step %.6f ms, peak %.6f GiB of a "
        "device; %.2f GiB of this process\n",
        CpuSeconds() - before, simulation.devices, simulation.tasks.size(),
        simulation.step_us / 1e3, static_cast<double>(simulation.peak_bytes) / (1 << 30),
        PeakGib());
  }
  constexpr int64_t kMostCompared = 1024;
  if (devices > kMostCompared) return absl::OkStatus();
  for (int64_t most : {int64_t{1}, devices}) {
    before = CpuSeconds();
    ISOMER_ASSIGN_OR_RETURN(
        const LoweredPlan lowered,
        most == 1 ? LowerForSimulation(cost.machine(), plan, most) : LowerPlan(plan));
    const Simulation simulation = Simulate(cost, lowered.mapped.graph, lowered.schedule);
    std::printf("%s: %.4f s CPU, %ld devices, %d tasks, step %.9f ms, peak %ld bytes; %.2f GiB\n",
                most == 1 ? "classes" : "all", CpuSeconds() - before, simulation.devices,
                simulation.tasks.size(), simulation.step_us / 1e3, simulation.peak_bytes,
                PeakGib());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) {
    std::fprintf(stderr,
                 "usage: prediction MODEL PRESET NODES BATCH PLAN [STAGES MICRO_BATCHES]\n");
    return 2;
  }
  isomer::Request request{.model = argv[1], .machine = argv[2], .plan = argv[5]};
  request.nodes = std::atoll(argv[3]);
  request.batch = std::atoll(argv[4]);
  if (argc == 8) {
    request.stages = std::atoll(argv[6]);
    request.micro_batches = std::atoll(argv[7]);
  }
  const absl::Status measured = isomer::Measure(request);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(measured.message()).c_str());
  return 2;
}
