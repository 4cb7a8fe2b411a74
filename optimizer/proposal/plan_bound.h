// The lower bound (lower_bound.h) that a plan is compared with.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PLAN_BOUND_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PLAN_BOUND_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/bound/lower_bound.h"
#include "optimizer/proposal/strategy_search.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Of plans over the model's graph, or over the one that algebra made for this plan (of
// `rewritten`), if that is less. For pipelines, and where each weight is updated in a way of its
// own, the work of one device, shared out among all: in however many pieces it is done, they take
// no less together; of several kinds of devices, by their speed, if no times are measured.
// `options`: of the tables, which have others afterwards. `bound`: but for what is enough, which is
// `close_bound` of the plan's step.
absl::StatusOr<std::optional<LowerBound>> BoundOfPlan(const Graph& graph, const Plan& plan,
                                                      absl::Span<const Rewritten> rewritten,
                                                      CostOptions options, BoundOptions bound,
                                                      double close_bound, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PLAN_BOUND_H_
