// Which cuts to take of those that there are.
//
// A rewrite whose match spans a cut is lost. So the cuts taken are those that the fewest matches of
// the algebra span, under a wish for the size of pieces: a dynamic program over the chain of cuts,
// whose sum is the matches lost, and a penalty for operators of a piece beyond a size that makes
// its search slow. A cut that nothing spans is always worth taking.
#ifndef ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_
#define ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_

#include <vector>

#include "optimizer/sharding/compute_graph.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

// For each cut, behind the node at this place of compute.nodes, the matches that span it: those
// with a node before and a node behind; and half a match more if what follows acts
// element by element, for it may be fused once others were. All of them contain the cut's producer,
// whose output is all that connects the sides (but for weights that both use). Cuts in like
// surroundings are looked at once, so that the time is that of the distinct layers of a model.
std::vector<double> CountSpanningMatches(const Graph& graph, const ComputeGraph& compute,
                                         const std::vector<int>& cuts, RuleMatcher* matcher);

// The places in `cuts` (ascending) of those to take. No piece but the last has fewer than
// `min_nodes` of the `num_nodes` operators.
std::vector<int> ChooseCuts(const std::vector<int>& cuts, const std::vector<double>& spanning,
                            int num_nodes, int min_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CUT_CHOICE_H_
