// Whether the model inside of a plan is the model that a user has.
#ifndef ISOMER_VERIFIER_PLANS_MODEL_MATCH_H_
#define ISOMER_VERIFIER_PLANS_MODEL_MATCH_H_

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Ok if both have the same calls on the same tensors, inputs, weights and outputs of the same names
// and types, the same values of weights and constants, and the same loss. Names of models and of
// calls are for people. The error names the first difference.
absl::Status ExpectSameModel(const Model& own, const Model& of_plan);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLANS_MODEL_MATCH_H_
