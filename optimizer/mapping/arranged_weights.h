// Calls that arrange a weight that others read as it is, such as the transpose of an embedding that
// is the last product's weight, too.
//
// What a device needs of such a call it can make by itself, of its own copy of the weight: no other
// call costs so little beside what it would cost to send what it makes. The call is then split as
// its user asks, and the copies that the user wants are copies of the weight:
//   replicate(transpose(w)) -> transpose(replicate(w))
// Baselines have it so (MappedModel::copies_arranged), and searches try it: the alternative, a part
// on each device and a gathering of all, leaves each with a part of the weight's gradient.
// Copies of other calls are not in the space of choices (sharding_choice.h).
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

// Whether a step has such calls.
bool ArrangesWeights(const Graph& graph, const ComputeGraph& compute);

// Whether a call of a plan's graph has copies.
bool HasCopiedCalls(const Graph& graph);

// The choices of the calls that arrange weights, for their first users' choices: their results,
// and so their operands, have copies. Those that cannot be made so are left out, as are those whose
// user works through several micro-batches, for each of which it would be made anew.
absl::StatusOr<std::map<NodeId, ShardingChoice>> ChoicesOfArrangedWeights(
    const Graph& graph, const ComputeGraph& compute,
    const std::map<NodeId, ShardingChoice>& choices, CostTables* tables);

// `choice` with one copy of everything.
ShardingChoice WithoutCopies(const ShardingChoice& choice);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_ARRANGED_WEIGHTS_H_
