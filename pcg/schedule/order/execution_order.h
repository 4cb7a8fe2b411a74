// In which order devices work through the operators of a graph.
//
// A device takes its compute tasks one after the other, communication beside them. Depth first, a
// branch would be computed to its end before the next begins, and every exchange within it would
// keep the device waiting. So operators are ordered by the exchanges that lie before them:
//
//   a1 -exchange- a2 -exchange- a3        a1 b1 | a2 b2 | a3
//   b1 -exchange- b2                      while a1's result is exchanged, b1 is computed
//
// and within that as in the graph's own order. Short branches are computed to their ends before the
// longest is, whose last exchanges then have nothing beside them. Spread, they come between the
// levels (numbers of exchanges before) of the longest, where the least is:
//
//   a1 -e- a2 -e- a3 -e- a4               a1 b1 | a2 b2 | a3 c1 | a4
//   b1 -e- b2,   c1                       not a1 b1 c1 | a2 b2 | a3 | a4
//
// What is made of weights alone (their copies in a
// lower precision) comes with the first operator that reads it. Chains stay as they are, and so do
// graphs without exchanges.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_EXECUTION_ORDER_H_
#define ISOMER_PCG_SCHEDULE_ORDER_EXECUTION_ORDER_H_

#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

// `order`: topological. `is_move`: by node, a parallel operator that devices run; `is_fused`: such
// a one that is a step of a chain, which is one exchange; a chain that only slices is none.
std::vector<NodeId> ExecutionOrder(const Graph& graph, std::vector<NodeId> order,
                                   const std::vector<bool>& is_move,
                                   const std::vector<bool>& is_fused, bool spread = false);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_EXECUTION_ORDER_H_
