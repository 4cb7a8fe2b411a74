#include "optimizer/proposal/call_order.h"

#include <utility>

#include "optimizer/proposal/search_context.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool IsFastEnough(const SearchContext& context, const Submachine& on) {
  return on.is_searched && !context.contest.PredictionsAreSlow();
}

absl::Status Reorder(SearchContext* context, Submachine* on) {
  for (const auto& [entry, mapped] : on->entered) {
    if (context->deadline.Reached().has_value()) break;
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, context->contest.PredictionOf(entry));
    if (!context->IsVeryNearBest(found.step_us)) continue;
    ISOMER_ASSIGN_OR_RETURN(Plan plan, context->PlanOf(mapped, nullptr, CallOrder::kModel));
    ISOMER_RETURN_IF_ERROR(context->contest.Consider(std::move(plan), kFound).status());
    ISOMER_RETURN_IF_ERROR(context->ConsiderOtherwiseArranged(mapped, found));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const Proposer kCallOrder = {"call_order", "calls in the model's order",
                                       Proposer::When::kRefine, IsFastEnough, Reorder};

}  // namespace isomer
