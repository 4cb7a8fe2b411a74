// Level 3: the best choice for every node, by dynamic programming over a graph of cost tables.
//
// The problem: every node has a list of choices with a time each; every edge has a table of times
// over the choices of its two ends; the sum is to be least. Two reductions take a series-parallel
// graph to one edge between its terminals, exactly:
//
//   series    a - m - b           T[a][b] = min over m: L[a][m] + m's time + R[m][b]
//   parallel  two edges a - b     T[a][b] = L[a][b] + R[a][b], one after the other,
//                                 or max(L[a][b], R[a][b]) if the one keeps to one share of the
//                                 machine and the other to another: at the same time
//
// (Unity, OSDI'22, section 6: sequence and non-sequence splits of its dynamic programming.) A node
// with one neighbour folds into it; of several that lead to one, each may keep to a share of its
// own, beside those on the other. Tables are made when something asks for them: those of a share
// only where branches could run beside each other, and none that the memo (mapping_memo.h) has from
// another candidate.
//
// What is left of a graph that is not series-parallel, its core, has three neighbours or more at
// every node. In a small core, the node with most is set to each of its choices in turn, and the
// rest is solved for each: exact. In a larger one:
//
//   bound     the core's minimum from below, by message passing (mapping_bound.h)
//   solution  nodes are set one after the other, with reductions in between, to what the messages
//             make look best; then again, each time with other nodes set (to what they are) and the
//             rest free, so that it never gets worse
//
// and the solution reports the gap between the two.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_H_

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

MappingSolution SolveMapping(const MappingProblem& problem, const MappingOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_H_
