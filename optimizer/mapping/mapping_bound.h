// A bound from below for a sum of functions of one and of two variables, by message passing.
//
// TRW-S (Kolmogorov, PAMI 2006): sequential tree-reweighted message passing. A message along an
// edge moves cost from one of its ends to the other; sums stay what they are for every assignment.
// Passing over the nodes in order and back, with each node's cost shared out evenly among the
// chains through it, never lowers the sum of all minima: the bound.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_BOUND_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_BOUND_H_

#include <vector>

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

struct PairwiseProblem {
  std::vector<std::vector<float>> us;  // per node and choice; kImpossibleUs: none
  struct Edge {
    int a, b;                // a < b
    const CostTable* table;  // rows: a's choices
  };
  std::vector<Edge> edges;
};

struct PairwiseBound {
  double us = 0;  // no assignment costs less; kImpossibleUs: there is none
  // Per node and choice: what it costs with all that the messages moved to it.
  std::vector<std::vector<float>> reparametrised;
};

// `passes`: over all nodes, there and back.
PairwiseBound BoundPairwise(const PairwiseProblem& problem, int passes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_BOUND_H_
