#include "optimizer/proposal/arranged_weights_proposer.h"

#include <utility>

#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::Status ConsiderOtherwiseArranged(MappedModel mapped, const Prediction& as_mapped,
                                       SearchContext* context) {
  if (!context->arranges_weights || !context->Asks(kArrangedWeights) ||
      !context->IsVeryNearBest(as_mapped.step_us)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&context->contest.ledger(), kArrangedWeights.name);
  mapped.copies_arranged = !mapped.copies_arranged;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(mapped));
  return context->contest.Consider(std::move(plan), kFound).status();
}

constinit const Proposer kArrangedWeights = {
    "arranged_weights", "transposed and joined weights made anew by each device that reads them",
    Proposer::When::kRefine, nullptr, nullptr};

}  // namespace isomer
