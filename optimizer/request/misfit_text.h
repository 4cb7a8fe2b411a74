#ifndef ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_
#define ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/request/optimize_request.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"

namespace isomer {

// One line on a search that found no plan that fits (DoesNotFitText). Where more nodes may help, it
// searches for how many do, which takes seconds.
absl::StatusOr<std::string> MisfitText(const OptimizeResult& result, const Model& model,
                                       const RuleIndex& rules, const CostModel& cost,
                                       const OptimizeOptions& options);

// One line on outputs that a plan of the request is better without, as they leave little room on a
// device (OutputsLeaveNoRoomText), unless the request says whether they stay. nullopt: they do.
std::optional<std::string> LeftOutOutputsText(const OptimizeRequest& request,
                                              const OptimizeOptions& options, const Model& model,
                                              const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_
