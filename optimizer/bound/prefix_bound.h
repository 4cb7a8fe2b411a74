// A lower bound for all assignments that begin with a given prefix: the heuristic of A*
// (exhaustive.h).
//
// For a sum of unary and pairwise functions (mapping_bound.h), one pass of messages from the last
// node to the first: each node v sends to every earlier neighbour u
//
//   m(x_u) = min over x_v: (cost of v and of what v received) / earlier neighbours; plus the edge
//
// so that a prefix costs at least itself and its messages from outside. Exact if no node has two
// earlier neighbours.
#ifndef ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_

#include <vector>

#include "optimizer/mapping/mapping_bound.h"

namespace isomer {

class PrefixBound {
 public:
  // The tables of `problem` must outlive this.
  explicit PrefixBound(const PairwiseProblem& problem);

  // Bound of the empty prefix.
  double root_us() const { return root_us_; }
  // Growth of the bound when node `node` gets choice `choice`, given `choices` for all earlier
  // nodes.
  double AddedUs(int node, int choice, const std::vector<int>& choices) const;

 private:
  struct Earlier {
    int node;
    const CostTable* table;       // rows: the earlier node's choices
    std::vector<double> message;  // message to it
  };
  std::vector<std::vector<Earlier>> earlier_;  // per node
  std::vector<std::vector<double>> total_;     // [node][choice]: cost including received messages
  std::vector<double> root_us_of_;  // per node without earlier neighbours: minimum of that
  double root_us_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_
