// Level 3: the best choice for every node, by dynamic programming over a graph of cost tables.
//
// Every node has a list of choices with a time each, every edge a table of times over the choices
// of its two ends; the sum is minimised. Two exact reductions take a series-parallel graph to one
// edge between its terminals:
//
//   series    a - m - b           T[a][b] = min over m: L[a][m] + m's time + R[m][b]
//   parallel  two edges a - b     T[a][b] = L[a][b] + R[a][b] if the branches share devices,
//                                 or max(L[a][b], R[a][b]) if they run concurrently on disjoint
//                                 shares of the machine
//
// (Unity, OSDI'22, section 6: sequence and non-sequence splits of its dynamic programming.) A node
// with one neighbour folds into it; several that fold into one node may each keep to a share of
// their own and run concurrently. Tables are made lazily: those of a share only where branches
// could be concurrent, and none that the memo (mapping_memo.h) has from another candidate.
//
// The irreducible core of other graphs has degree 3 or more at every node. In a small core, the
// node of highest degree is fixed to each of its choices in turn, and the rest is solved for each:
// exact. In a larger one:
//
//   bound     a lower bound on the core's minimum, by message passing (mapping_bound.h)
//   solution  nodes are fixed one after the other, with reductions in between, to the choice that
//             the messages favour; then again, each time with other nodes fixed (to their current
//             choice) and the rest free, so that the cost never rises
//
// and the solution reports the gap between the two.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_H_

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

MappingSolution SolveMapping(const MappingProblem& problem, const MappingOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_H_
