#include "optimizer/simulator/prediction_memo.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/cost/workspace.h"
#include "pcg/ir/pcg.pb.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

// A Linear without bias and activation is a product like others: a search may leave either. Where
// kernels are measured, or libraries' memory is counted, each has its own.
bool AreProductsAlike(const CostModel& cost) {
  return cost.profile() == nullptr && !RunsOnCores(cost.machine());
}

bool IsBareLinear(const Node& node) {
  return node.op.kind() == OpKind::kLinear && node.inputs.size() == 2 &&
         node.op.Int("activation") == 0;
}

// Nor does anything depend on what calls are named.
void MakeAlike(const Graph& graph, bool products, proto::GraphProto* message) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) continue;
    proto::NodeProto* call = message->mutable_nodes(id);
    call->clear_name();
    if (!products || !IsBareLinear(node)) continue;
    call->set_op(std::string(OpName(OpKind::kMatMul)));
    call->clear_attributes();
  }
}

}  // namespace

uint64_t WhatRuns(const CostModel& cost, Plan* plan) {
  Model model = std::exchange(plan->model, Model());
  std::vector<DerivationStep> steps = std::exchange(plan->steps, {});
  proto::PlanProto message;
  ToProto(*plan, &message);
  plan->model = std::move(model);
  plan->steps = std::move(steps);
  message.clear_predicted_step_us();
  message.clear_predicted_peak_bytes();
  message.clear_seal();
  MakeAlike(plan->graph, AreProductsAlike(cost), message.mutable_graph());
  return ProtoDigest(message);
}

SimulatedStep StepOf(const Simulation& simulation) {
  return {.step_us = simulation.step_us,
          .exposed_tail_us = simulation.exposed_tail_us,
          .compute_us = simulation.compute_us,
          .peak_bytes = simulation.peak_bytes,
          .tasks = std::llround(simulation.tasks_for_each * simulation.tasks.size())};
}

PredictionMemo::Known PredictionMemo::FindOrBegin(uint64_t what_runs,
                                                  absl::FunctionRef<Future()> begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [known, added] = known_.try_emplace(what_runs);
  if (added) known->second.simulation = begin();
  return known->second;
}

void PredictionMemo::Keep(uint64_t what_runs, const SimulatedStep& step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  known_[what_runs] = {.step = step, .simulation = {}};
}

void PredictionMemo::Forget(uint64_t what_runs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = known_.find(what_runs);
  if (known != known_.end() && !known->second.step.has_value()) known_.erase(known);
}

absl::Status PredictionMemo::PredictClosely(const CostModel& cost, Plan* plan) {
  const uint64_t what_runs = WhatRuns(cost, plan);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto close = close_.find(what_runs);
    if (close != close_.end()) {
      plan->predicted_step_us = close->second.step_us;
      plan->predicted_peak_bytes = close->second.peak_bytes;
      return absl::OkStatus();
    }
  }
  ISOMER_RETURN_IF_ERROR(PredictPlanClosely(cost, plan).status());
  const std::lock_guard<std::mutex> lock(mutex_);
  close_[what_runs] = {plan->predicted_step_us, plan->predicted_peak_bytes};
  return absl::OkStatus();
}

}  // namespace isomer
