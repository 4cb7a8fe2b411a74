// A bound from below for all assignments that begin with a given prefix: the heuristic of A*
// (exhaustive.h).
//
// For a sum of functions of one node and of two (mapping_bound.h), one pass of messages from the
// last node to the first: each sends, to every earlier neighbour u it shares out its cost to,
//
//   m(x_u) = min over x_v: cost of v and of what v received, split evenly; and the edge
//
// so that a prefix costs at least itself and what it received from outside. Exact where no node has
// two earlier neighbours.
#ifndef ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_

#include <vector>

#include "optimizer/mapping/mapping_bound.h"

namespace isomer {

class PrefixBound {
 public:
  // The tables of `problem` must outlive this.
  explicit PrefixBound(const PairwiseProblem& problem);

  // Of the empty prefix.
  double root_us() const { return root_us_; }
  // What the bound grows by when node `node` gets choice `choice`, all before having theirs.
  double AddedUs(int node, int choice, const std::vector<int>& choices) const;

 private:
  struct Earlier {
    int node;
    const CostTable* table;       // rows: the earlier node's choices
    std::vector<double> message;  // to it
  };
  std::vector<std::vector<Earlier>> earlier_;  // per node
  std::vector<std::vector<double>> total_;     // per node and choice: with what it received
  std::vector<double> root_us_of_;             // per node without earlier ones: the least of that
  double root_us_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_PREFIX_BOUND_H_
