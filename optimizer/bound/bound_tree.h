// Branch and bound over the mixtures of bound_mixture.h.
//
// A mixture of several assignments is fractional: half of a call on one device, half of it on all,
// with half the cost of moving it. So the space is branched where the assignments disagree most: in
// one branch a call keeps to choices of one kind, in the other to all others. Each branch has a
// mixture and a bound of its own, and the least over all branches is a bound of the full space; the
// branch with the least is branched next.
#ifndef ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_
#define ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_

#include "optimizer/bound/bound_mixture.h"
#include "optimizer/bound/bounded_calls.h"
#include "optimizer/bound/relaxed_step.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct BoundTreeOptions {
  int solutions = 8;       // mappings per mixture
  int cuts = 0;            // branchings
  double enough_us = 0;    // stops at a bound of so much or more
  Deadline deadline = {};  // stops branching; the bound so far is valid
};

double BestBoundUs(const RelaxedStep& step, const BoundedCalls& calls,
                   const BoundTreeOptions& options, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_
