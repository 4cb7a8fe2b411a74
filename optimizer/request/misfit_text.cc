#include "optimizer/request/misfit_text.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "optimizer/search/enough_devices.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<std::string> MisfitText(const OptimizeResult& result, const Model& model,
                                       const RuleIndex& rules, const CostModel& cost,
                                       const OptimizeOptions& options) {
  std::optional<int64_t> enough;
  if (options.plan.empty() && options.constraints.empty() &&
      result.searches.stop < StopReason::kTimeLimit) {
    ISOMER_ASSIGN_OR_RETURN(
        enough, EnoughNodes(model, rules, cost, options, result.plan.predicted_peak_bytes));
  }
  const Constraints::OfStep& step = options.constraints.step;
  const std::string of_step = options.plan.empty() && !step.empty()
                                  ? absl::StrCat("; ", step.source, ": ", step.ToString())
                                  : "";
  return absl::StrCat(DoesNotFitText(result, cost.machine(), enough), of_step);
}

std::optional<std::string> LeftOutOutputsText(const OptimizeRequest& request,
                                              const OptimizeOptions& options, const Model& model,
                                              const Machine& machine) {
  if (!options.training || request.given.contains("loss_alone")) return std::nullopt;
  const auto text = OutputsLeaveNoRoomText(model, machine);
  if (!text.has_value()) return std::nullopt;
  return absl::StrCat(model.name, ": ", *text);
}

}  // namespace isomer
