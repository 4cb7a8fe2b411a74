// What the step of a plan consists of, beside those of the baselines.
#ifndef ISOMER_OPTIMIZER_PAGE_STEP_BARS_H_
#define ISOMER_OPTIMIZER_PAGE_STEP_BARS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/comparison/baseline_summaries.h"
#include "optimizer/cost/cost.h"
#include "optimizer/report/report.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/json.h"

namespace isomer {

// Shares of the step on the average device; they add up to 1.
struct StepParts {
  double compute = 0;
  double exposed_communication = 0;  // while nothing is computed
  double bubble = 0;                 // of idle_share, what a pipeline of equal stages waits
  double idle = 0;                   // the rest
};

struct StepBar {
  enum class Kind { kPlan, kBaseline, kOwn, kBound };
  std::string name;
  Kind kind = Kind::kBaseline;
  double step_us = 0;
  int64_t peak_bytes = 0;  // 0: not known
  bool fits = true;
  std::optional<StepParts> parts = {};  // absent: not known
};

// The plan, each baseline that was simulated, the user's own configuration and the bound. Parts of
// a baseline are known if its plan was kept (OptimizeOptions::keep_baselines). `report` and
// `baselines` are those of `result`. Errors: a call of the plan does not type-check.
absl::StatusOr<std::vector<StepBar>> StepBarsOf(const OptimizeResult& result, const Report& report,
                                                const CostModel& cost,
                                                BaselineSummaries* baselines);
Json BarsJson(const std::vector<StepBar>& bars);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_STEP_BARS_H_
