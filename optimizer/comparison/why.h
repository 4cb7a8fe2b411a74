// Why a plan was chosen: --explain.
#ifndef ISOMER_OPTIMIZER_COMPARISON_WHY_H_
#define ISOMER_OPTIMIZER_COMPARISON_WHY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/comparison/baseline_summaries.h"
#include "optimizer/comparison/plan_summary.h"
#include "optimizer/cost/cost.h"
#include "optimizer/report/report.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/json.h"

namespace isomer {

struct Why {
  // What is split, and where; against data parallelism, the user's own configuration and the best
  // other baseline, where the difference comes from; what each decision about the step gains; what
  // would have to change for that baseline to win.
  std::string text;
  Json json;
};
// `report` and `baselines` are those of `result`, with its baselines' plans
// (OptimizeOptions::keep_baselines). The plan without each decision is simulated again, and with
// the next best plan at other rates of the machine, some 20 times.
absl::StatusOr<Why> WhyOf(const OptimizeResult& result, const Report& report, const CostModel& cost,
                          BaselineSummaries* baselines);

// "  97 %  batch over 8 devices" and so on: how computation is split, the most first, and in which
// blocks each split but the first is.
std::string SplitsText(const PlanSummary& plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_WHY_H_
