// Machine views for every node of a derived graph: those of calls are given, those of parallel
// operators follow, so that shards stay where they are unless communication is meant.
#ifndef ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_
#define ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_

#include <map>
#include <vector>

#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// `choices`: of calls, by node of `graph`. Leaves lie where their first user wants them; other
// operators of one shard are put on device 0. Combine and Reduce keep what is left of their
// operand's view; Partition and Replicate are laid out as their user asks.
std::vector<MachineView> AssignViews(const Graph& graph,
                                     const std::map<NodeId, const ShardingChoice*>& choices);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_
