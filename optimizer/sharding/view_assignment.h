// Machine views for every node of a derived graph: given for calls, inferred for parallel
// operators, so that shards stay where they are unless communication is intended.
#ifndef ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_
#define ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_

#include <map>
#include <vector>

#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// `choices`: by call. Leaves are placed as their first user reads them; other unsplit operators on
// device 0. Combine and Reduce keep the remaining axes of their operand's view; Partition and
// Replicate take their user's.
std::vector<MachineView> AssignViews(const Graph& graph,
                                     const std::map<NodeId, const ShardingChoice*>& choices);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_VIEW_ASSIGNMENT_H_
