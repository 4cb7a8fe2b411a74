// Chooses among the possible cuts.
//
// A rewrite whose match spans a cut is lost. So the cuts minimise the matches of the algebra that
// span them, plus a penalty for pieces of more operators than a search handles quickly: a dynamic
// program over the chain of cuts. A cut that no match spans is always taken.
#ifndef ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_
#define ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_

#include <vector>

#include "optimizer/sharding/compute_graph.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

// For each cut, after the node with this index in compute.nodes: the number of matches with nodes
// on both sides, plus half a match if an elementwise operator follows, which may be fused after
// other rewrites. All of these contain the cut's producer, whose output is all that connects the
// sides (except for weights that both use). Cuts with equal neighbourhoods are examined once, so
// that the time is that of a model's distinct layers.
std::vector<double> CountSpanningMatches(const Graph& graph, const ComputeGraph& compute,
                                         const std::vector<int>& cuts, RuleMatcher* matcher);

// Indices into `cuts` (ascending) of those to take. No piece but the last has fewer than
// `min_nodes` of the `num_nodes` operators.
std::vector<int> ChooseCuts(const std::vector<int>& cuts, const std::vector<double>& spanning,
                            int num_nodes, int min_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_
