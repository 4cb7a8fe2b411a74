// What a plan says besides its graphs and steps: that it means something, and what it changes.
#ifndef ISOMER_VERIFIER_PLAN_FIELDS_H_
#define ISOMER_VERIFIER_PLAN_FIELDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/plan.h"

namespace isomer {

// Ok if every name in the plan's options is that of a trained weight, what is for training is said
// of training alone, and numbers are numbers. The error names the field.
absl::Status CheckPlanFields(const Plan& plan);

// In what a step of the plan is not the model's, though its graph is equal: lines for people. A
// plan of the model's own precision without delayed weights has none.
//   "weights are up to one version old, and change every 4 steps (2BW)"
//   "it computes in bfloat16"
std::vector<std::string> DeviationsOf(const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLAN_FIELDS_H_
