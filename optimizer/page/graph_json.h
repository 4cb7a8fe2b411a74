// The graphs of the page: the model's, and the plan's with what is known of each operator.
#ifndef ISOMER_OPTIMIZER_PAGE_GRAPH_JSON_H_
#define ISOMER_OPTIMIZER_PAGE_GRAPH_JSON_H_

#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/machine/machine.h"
#include "optimizer/page/lineage.h"
#include "optimizer/report/node_times.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"

namespace isomer {

// {nodes: [{kind, label, name, count, type, operands, members}], edges: [{from, to, count, type,
// returns}]}. Of small graphs it is there without folding, too (kMostUnfolded).
Json ModelGraphJson(const Graph& graph);

// The same; nodes also have, per call and step: how they are split and on which devices, times,
// where these are from, exchanges, and steps of the derivation by number, first to last.
struct PlanGraphSources {
  const Plan& plan;
  const MappedGraph& mapped;  // the plan's, lowered
  const std::vector<NodeTimes>& times;
  const Machine& machine;
  const Lineage* lineage;  // null: not known
};
absl::StatusOr<Json> PlanGraphJson(const PlanGraphSources& sources);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_GRAPH_JSON_H_
