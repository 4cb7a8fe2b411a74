#ifndef ISOMER_OPTIMIZER_REPORT_PLAN_DOT_H_
#define ISOMER_OPTIMIZER_REPORT_PLAN_DOT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/machine/machine.h"
#include "optimizer/report/node_times.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A plan's graph for graphviz: each operator with its split, devices and times, darker the more of
// the step it takes; chains of parallel operators with what they send. Of more than kMostUnfolded
// operators repeated layers are one (folded_graph.h). `mapped` is the plan's, lowered, as `times`
// are of it. Errors: a call does not type-check.
absl::StatusOr<std::string> PlanDot(const MappedGraph& mapped, const std::vector<NodeTimes>& times,
                                    const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_PLAN_DOT_H_
