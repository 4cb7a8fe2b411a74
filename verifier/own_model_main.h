// Whether a plan is of the model that a user has, which the plan may have given a loss: joins
// models with the verifier, for mains.
#ifndef ISOMER_VERIFIER_OWN_MODEL_MAIN_H_
#define ISOMER_VERIFIER_OWN_MODEL_MAIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

struct OwnModelFindings {
  int outputs_left_out = 0;  // the plan gives back the loss alone
  std::string loss;          // that the plan has of the model, in training
  // "OUTPUT:INPUT" of what the plan carries from step to step, and the model does not say.
  std::vector<std::string> carried;
  int states_by_name = 0;          // or so many that their names say (CarryStates)
  bool unfused_attention = false;  // the plan has attention as it runs without fused kernels
};

// Ok if the model inside of the plan is `model`, as LoadAnyModel reads it, in training with the
// plan's loss of whichever output, in inference with its states, with its attention fused or not,
// and with the room in experts that the plan assumes to be enough. FailedPrecondition names `spec`,
// where it is from, and the first difference.
absl::Status ExpectOwnModel(const Model& model, const std::string& spec, const Plan& plan,
                            OwnModelFindings* findings);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_OWN_MODEL_MAIN_H_
