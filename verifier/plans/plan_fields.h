// What a plan says besides its graphs and steps: that it means something.
#ifndef ISOMER_VERIFIER_PLANS_PLAN_FIELDS_H_
#define ISOMER_VERIFIER_PLANS_PLAN_FIELDS_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Ok if every name in the plan's options is that of a trained weight, what is for training is said
// of training alone, and numbers are numbers. The error names the field.
absl::Status CheckPlanFields(const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLANS_PLAN_FIELDS_H_
