// Memo of predictions, shared by the contests of one run: the algebra-first search, run
// concurrently with the joint one, baselines, and searches of parts of the machine reach many of
// the same plans.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_
#define ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_

#include <cstdint>
#include <future>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A digest of all of a plan that its prediction on this machine can depend on. The plan stays as it
// is; it is changed meanwhile.
uint64_t WhatRuns(const CostModel& cost, Plan* plan);

// What is kept of a simulation, whose tasks are large.
struct SimulatedStep {
  double step_us = 0, exposed_tail_us = 0, compute_us = 0;  // as in Simulation
  int64_t peak_bytes = 0;
  int64_t tasks = 0;  // what a search counts by: also of devices that were lowered and went
};
SimulatedStep StepOf(const Simulation& simulation);

// Predictions on one cost model, by WhatRuns. Thread-safe.
class PredictionMemo {
 public:
  using Future = std::shared_future<absl::StatusOr<Simulation>>;
  struct Known {
    std::optional<SimulatedStep> step;
    Future simulation;  // if there is no step
  };

  // What is known, or else the simulation that `begin` starts.
  Known FindOrBegin(uint64_t what_runs, absl::FunctionRef<Future()> begin);
  // The step alone is kept; futures already returned stay valid.
  void Keep(uint64_t what_runs, const SimulatedStep& step);
  // Frees a simulation that nobody asked for.
  void Forget(uint64_t what_runs);

  // PredictPlanClosely, once for all plans that run alike.
  absl::Status PredictClosely(const CostModel& cost, Plan* plan);

 private:
  struct Close {
    double step_us;
    int64_t peak_bytes;
  };

  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Known> known_;
  absl::flat_hash_map<uint64_t, Close> close_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_
