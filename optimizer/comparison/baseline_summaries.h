// Summaries of the plans that a search was held against.
#ifndef ISOMER_OPTIMIZER_COMPARISON_BASELINE_SUMMARIES_H_
#define ISOMER_OPTIMIZER_COMPARISON_BASELINE_SUMMARIES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/comparison/plan_summary.h"
#include "optimizer/cost/cost.h"
#include "optimizer/search/optimizer.h"

namespace isomer {

// Each plan is simulated when it is first asked for, and once, whoever asks. Not for several
// threads.
class BaselineSummaries {
 public:
  // Of the plans that `result` kept (OptimizeOptions::keep_baselines). Both must outlive this.
  BaselineSummaries(const OptimizeResult& result, const CostModel& cost)
      : result_(result), cost_(cost) {}

  // Errors: NotFound, the result has no such plan.
  absl::StatusOr<PlanSummary> Of(const std::string& name);

 private:
  absl::StatusOr<PlanSummary> Simulated(const std::string& name) const;

  const OptimizeResult& result_;
  const CostModel& cost_;
  std::map<std::string, absl::StatusOr<PlanSummary>> summaries_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_BASELINE_SUMMARIES_H_
