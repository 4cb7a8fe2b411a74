// The optimizer as a whole: the fastest plan among those that the search and the baselines find.
#ifndef ISOMER_OPTIMIZER_OPTIMIZER_H_
#define ISOMER_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/baselines.h"
#include "optimizer/canonical_form.h"
#include "optimizer/constraints.h"
#include "optimizer/contest.h"
#include "optimizer/lower_bound.h"
#include "optimizer/pipeline_plan.h"
#include "optimizer/search.h"
#include "optimizer/simulator.h"
#include "optimizer/strategy_search.h"
#include "pcg/plan.h"

namespace isomer {

struct OptimizeOptions {
  Strategy strategy = Strategy::kHierarchical;
  bool training = true;
  DataType precision = DataType::kFloat32;  // what the plan computes in
  UpdateOptions update = {};                // of weights, in training
  // Take another method of updating weights where it is faster, or where alone the plan fits.
  bool choose_update_method = false;
  // Of pipelines, which are then drained less often than after each step where that is faster: it
  // is another training (UpdateOptions). 1: they are drained.
  int32_t steps_between_flushes = 1;
  // Larger buckets of gradients than `update` says where they are faster.
  bool choose_buckets = false;
  std::string plan;          // a baseline's name, or empty: search
  PipelineOptions pipeline;  // of the baseline of that name
  SearchOptions search;
  int threads = 0;             // that predict plans; 0: all cores. The plan does not depend on it
  bool whole_machine = false;  // no pipelines, and no plans that leave devices idle
  int64_t devices = 0;         // the first of the machine, which alone are used; 0: all
  // Tell how far the plan may be from the best one (lower_bound.h), of models of up to so many
  // nodes.
  int64_t bound_nodes = 0;
  BoundOptions bound;
  // A user's. The plan keeps them; a baseline that does not is reported, and no plan.
  Constraints constraints;
  // What shows that calls are an operator (canonical_form.h), which is what the plan's certificate
  // will be asked; none: the model's calls are taken as they are.
  AreEqual equal;
};

struct OptimizeResult {
  Plan plan;  // the fastest that fits; the one with least memory if none does
  bool fits = true;
  Simulation simulation;  // of `plan`
  std::string origin;     // kFound, or the baseline that could not be beaten
  std::map<std::string, Prediction> baselines;
  std::optional<PipelineSummary> pipeline;  // of `plan`
  Prediction single_device;                 // the model as it is on one device
  std::vector<std::string> ignoring;        // baselines that do not keep the constraints
  SearchRecord searches;
  // Of the model's graph, or of the plan's if that is less; none for a plan that it is not over.
  std::optional<LowerBound> bound;
  double bound_seconds = 0;
  double seconds = 0;

  // By how much of its step the plan could be faster at most. REQUIRES: a bound.
  double Gap() const {
    const double step_us = plan.predicted_step_us;
    return bound->step_us == step_us ? 0 : 1 - bound->step_us / step_us;
  }
};

// REQUIRES: the model's types are sequential; for training, it has a loss.
absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_OPTIMIZER_H_
