// A lower bound for a sum of unary and pairwise functions, by message passing.
//
// TRW-S (Kolmogorov, PAMI 2006): sequential tree-reweighted message passing. A message along an
// edge moves cost from one end to the other, which keeps the sum of every assignment (a
// reparametrisation). A forward and a backward pass over the nodes, with each node's cost divided
// evenly among the chains through it, never lower the sum of all minima, which is the bound.
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
  double us = 0;  // lower bound; kImpossibleUs: infeasible
  // Per node and choice: its cost after the messages.
  std::vector<std::vector<float>> reparametrised;
};

// `passes`: forward and backward over all nodes.
PairwiseBound BoundPairwise(const PairwiseProblem& problem, int passes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_BOUND_H_
