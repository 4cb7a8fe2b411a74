#include "optimizer/comparison/baseline_summaries.h"

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<PlanSummary> BaselineSummaries::Of(const std::string& name) {
  const auto known = summaries_.find(name);
  if (known != summaries_.end()) return known->second;
  return summaries_.emplace(name, Simulated(name)).first->second;
}

// The search predicted its step and memory already, by a closer simulation perhaps than this one,
// which is for what the step consists of.
absl::StatusOr<PlanSummary> BaselineSummaries::Simulated(const std::string& name) const {
  const auto kept = result_.baseline_plans.find(name);
  if (kept == result_.baseline_plans.end()) {
    return absl::NotFoundError(absl::StrCat("there is no plan of ", name));
  }
  OptimizeResult baseline;
  baseline.origin = name;
  baseline.plan = kept->second;
  Plan simulated = kept->second;
  ISOMER_ASSIGN_OR_RETURN(baseline.simulation, PredictPlan(cost_, &simulated));
  ISOMER_ASSIGN_OR_RETURN(baseline.lowered, LowerForSimulation(cost_.machine(), simulated));
  baseline.pipeline = SummaryOfPipeline(baseline.lowered.schedule, baseline.simulation);
  return SummaryOf(name, baseline, cost_);
}

}  // namespace isomer
