#ifndef ISOMER_MODELS_LOAD_PLAN_H_
#define ISOMER_MODELS_LOAD_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/load.h"
#include "pcg/ir/plan.h"

namespace isomer {

// What a MODEL is made to do; a plan file says so itself.
struct PlanOptions {
  LoadOptions load;
  std::string mode = "training";        // or "inference"; --mode
  std::string precision = "float32";    // --precision
  std::string optimizer = "sgd";        // --optimizer
  std::vector<std::string> carry = {};  // --carry (CarryStates), in inference
};

// Whether `spec` is a plan file, which has a mode and the like of its own. Errors: it cannot be
// read.
absl::StatusOr<bool> IsPlanFile(const std::string& spec);

// A plan file; or a MODEL, with a loss if it is to be trained, as a plan for one device, which has
// no seal. Errors are one line that names the file or the option.
absl::StatusOr<Plan> LoadPlanOrModel(const std::string& spec, const PlanOptions& options);

}  // namespace isomer

#endif  // ISOMER_MODELS_LOAD_PLAN_H_
