// Layout calls on weights that other calls read as well, such as the transpose of a tied embedding
// in the output projection.
//
// Each device can compute its result from its own replica of the weight, which costs next to
// nothing compared with sending the result. So the call is sharded as its user asks, and
// replication moves to the weight:
//   replicate(transpose(w)) -> transpose(replicate(w))
// Baselines always do this (MappedModel::copies_arranged), and searches try it. The alternative,
// sharding the call and all-gathering its result, leaves each device with only a shard of the
// weight's gradient.
#ifndef ISOMER_OPTIMIZER_MAPPING_ARRANGED_WEIGHTS_H_
#define ISOMER_OPTIMIZER_MAPPING_ARRANGED_WEIGHTS_H_

#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Whether the graph has such calls.
bool ArrangesWeights(const Graph& graph, const ComputeGraph& compute);

// Whether a call of a plan's graph is replicated, that is, computed redundantly.
bool HasCopiedCalls(const Graph& graph);

// Choices for the layout calls on weights, from their first users' choices: results, and hence
// operands, are replicated. Omits calls for which that is not possible, and those whose user runs
// several micro-batches, for each of which the call would run again.
absl::StatusOr<std::map<NodeId, ShardingChoice>> ChoicesOfArrangedWeights(
    const Graph& graph, const ComputeGraph& compute,
    const std::map<NodeId, ShardingChoice>& choices, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_ARRANGED_WEIGHTS_H_
