#ifndef ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_
#define ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"

namespace isomer {

// One line on a search that found no plan that fits (DoesNotFitText). Where more nodes may help, it
// searches for how many do, which takes seconds.
absl::StatusOr<std::string> MisfitText(const OptimizeResult& result, const Model& model,
                                       const RuleIndex& rules, const CostModel& cost,
                                       const OptimizeOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REQUEST_MISFIT_TEXT_H_
