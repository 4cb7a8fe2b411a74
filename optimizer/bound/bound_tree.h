// Branch and bound over the mixtures of bound_mixture.h.
//
// A mixture is of several assignments, as if choices could be made in part: half of a call on one
// device, half of it on all, with half of what moving it costs. So the space is cut in two where
// they disagree most: in the one part a call keeps to choices of one kind, in the other to all
// others. Each part has a mixture and a bound of its own, and the least of all parts is a bound of
// the whole; the part with the least is cut next.
#ifndef ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_
#define ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_

#include "optimizer/bound/bound_mixture.h"
#include "optimizer/bound/bounded_calls.h"
#include "optimizer/bound/relaxed_step.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct BoundTreeOptions {
  int solutions = 8;       // of mappings, for a mixture
  int cuts = 0;            // of the space
  double enough_us = 0;    // a bound of so much, or more, ends it
  Deadline deadline = {};  // no more cuts; the bound so far is one
};

double BestBoundUs(const RelaxedStep& step, const BoundedCalls& calls,
                   const BoundTreeOptions& options, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_BOUND_TREE_H_
