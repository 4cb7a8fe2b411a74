// What a configuration computes again for the backward pass rather than keeping it.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_

#include <vector>

#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/recompute_mode.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Value of Plan::recomputed, of a model's graph or a plan's.
std::vector<NodeId> RecomputedNodes(RecomputeMode mode, const Graph& graph);

// Per call of `compute`: whether its result is kept.
std::vector<bool> KeptCalls(RecomputeMode mode, const Graph& graph, const ComputeGraph& compute);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_RECOMPUTE_H_
