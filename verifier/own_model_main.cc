#include "verifier/own_model_main.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "pcg/support/status_macros.h"
#include "verifier/plans/model_match.h"

namespace isomer {
namespace {

// Ok if the model inside of the plan is `own`, in training with the plan's loss of the output `of`.
absl::Status ExpectTrainedModel(Model own, const std::string& of, const Plan& plan,
                                OwnModelFindings* findings) {
  if (plan.mode == "training") {
    const std::string kind = own.loss.empty() ? KindOfLoss(plan.model) : "auto";
    ISOMER_RETURN_IF_ERROR(AttachLoss(&own, kind, of));
    findings->loss = LossText(own);
    // --loss_alone of isomer-optimize.
    const bool alone = plan.model.graph.outputs().size() == 1;
    findings->outputs_left_out = alone ? static_cast<int>(own.graph.outputs().size()) - 1 : 0;
    if (alone) ISOMER_RETURN_IF_ERROR(KeepLossAlone(&own));
  }
  return ExpectSameModel(own, plan.model);
}

}  // namespace

absl::Status ExpectOwnModel(const Model& own, const std::string& spec, const Plan& plan,
                            OwnModelFindings* findings) {
  absl::Status same;
  if (plan.mode == "training" && own.loss.empty()) {
    // Of whichever output.
    for (const Graph::NamedOutput& output : own.graph.outputs()) {
      const absl::Status is_this = ExpectTrainedModel(own, output.name, plan, findings);
      if (is_this.ok()) return is_this;
      if (same.ok()) same = is_this;
    }
  } else {
    same = ExpectTrainedModel(own, "", plan, findings);
    if (same.ok()) return same;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("model: not that of ", spec, ": ", std::string(same.message())));
}

}  // namespace isomer
