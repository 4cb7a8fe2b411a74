#include "optimizer/simulator/prediction_memo.h"

#include <cmath>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"

namespace isomer {

uint64_t WhatRuns(Plan* plan) {
  Model model = std::exchange(plan->model, Model());
  std::vector<DerivationStep> steps = std::exchange(plan->steps, {});
  const double step_us = std::exchange(plan->predicted_step_us, 0);
  const int64_t peak_bytes = std::exchange(plan->predicted_peak_bytes, 0);
  const uint64_t digest = SealOf(*plan);
  plan->model = std::move(model);
  plan->steps = std::move(steps);
  plan->predicted_step_us = step_us;
  plan->predicted_peak_bytes = peak_bytes;
  return digest;
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
  const uint64_t what_runs = WhatRuns(plan);
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
