// The optimizer: the fastest plan among those of the search and the baselines.
#ifndef ISOMER_OPTIMIZER_SEARCH_OPTIMIZER_H_
#define ISOMER_OPTIMIZER_SEARCH_OPTIMIZER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/bound/lower_bound.h"
#include "optimizer/canonical/canonical_form.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/proposal/proposer_ledger.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/proposal/strategy_search.h"
#include "optimizer/search/even_clusters.h"
#include "optimizer/sharding/constraints.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/substitution/search.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The origin of a plan that a user brings.
inline constexpr char kPriced[] = "file";

struct OptimizeResult {
  Plan plan;  // the fastest that fits; the one with least memory if none does
  bool fits = true;
  LoweredPlan lowered;    // `plan`, as it is simulated (LowerForSimulation)
  Simulation simulation;  // of `lowered`
  std::string origin;     // kFound, or the baseline that won
  std::map<std::string, Prediction> baselines;
  std::map<std::string, Plan> baseline_plans;  // if the options keep them
  std::optional<PipelineSummary> pipeline;     // of `plan`
  Prediction single_device;                    // the unrewritten model on one device
  std::vector<std::string> ignoring;           // baselines that violate the constraints
  std::string misfit;  // of the user's own configuration: what is not as asked
  // With --plan=grid: the configuration that the search would begin with, as estimated.
  std::optional<ConfigEstimate> first_choice;
  SearchRecord searches;
  ProposerLedger proposers;  // gain of each
  SearchPolicy policy;       // of this search
  // Lower bound for the model's graph, or for the plan's if that is lower; nullopt if it does not
  // apply to the plan.
  std::optional<LowerBound> bound;
  double bound_seconds = 0;
  double seconds = 0;
  // Where the search may choose what gradients are summed in: what the best plan takes that sums
  // them in the other.
  std::optional<Prediction> other_gradient_sums;

  // On a machine of several kinds of devices: what it is held against.
  std::vector<EvenCluster> even;

  // Relative gap between the plan's step and the bound. REQUIRES: a bound.
  double Gap() const {
    const double step_us = plan.predicted_step_us;
    return bound->step_us == step_us ? 0 : 1 - bound->step_us / step_us;
  }
};

// Prices a plan that there is already on the cost model's machine, as if a search had found it.
// InvalidArgument: it is for more devices than the machine has.
absl::StatusOr<OptimizeResult> PricePlan(Plan plan, const CostModel& cost);

// REQUIRES: the model's types are sequential; for training, it has a loss. Errors: constraints that
// contradict themselves, the model, the machine or the options, or that no plan keeps; one line
// that begins with file and line.
absl::StatusOr<OptimizeResult> Optimize(const Model& model, const RuleIndex& rules,
                                        const CostModel& cost, const OptimizeOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_OPTIMIZER_H_
