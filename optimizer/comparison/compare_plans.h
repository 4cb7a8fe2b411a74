// Two plan files held against each other: `isomer-optimize diff`.
#ifndef ISOMER_OPTIMIZER_COMPARISON_COMPARE_PLANS_H_
#define ISOMER_OPTIMIZER_COMPARISON_COMPARE_PLANS_H_

#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "pcg/support/json.h"

namespace isomer {

struct ComparedPlans {
  std::string note;  // that they do not do the same; "": they do
  // Both plans; where the difference of their steps comes from; all of it side by side; what would
  // have to change for the slower one to win.
  std::string text;
  Json json;  // DifferenceJson, with turning_points
};

// Prices both for the machine of `cost`. Errors name the file: it is no plan, or is for another
// number of devices.
absl::StatusOr<ComparedPlans> ComparePlans(const std::string& a, const std::string& b,
                                           const CostModel& cost);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_COMPARE_PLANS_H_
