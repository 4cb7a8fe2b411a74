// Which parallel configuration a plan is, if it is one.
#ifndef ISOMER_OPTIMIZER_SEARCH_GRID_OF_PLAN_H_
#define ISOMER_OPTIMIZER_SEARCH_GRID_OF_PLAN_H_

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/plan.h"

namespace isomer {

// The request for which --plan=grid makes this very plan on the machine: the same graph on the same
// devices, the same updates, the same results computed again. Found by making the plans of the
// requests that have the plan's numbers of stages, micro-batches and shards of weights.
// `options.equal`: as for the search that made the plan. Errors: NotFound, it is no such plan,
// which says what was tried; the machine has another number of devices.
absl::StatusOr<GridRequest> GridOfPlan(const Plan& plan, const RuleIndex& rules,
                                       const CostModel& cost, OptimizeOptions options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_GRID_OF_PLAN_H_
