// What it costs to take a tensor from where and how its producer leaves it to where and how a
// consumer needs it. What a device holds already costs nothing; what is missing comes from the
// nearest holder. Partial sums are reduced first, each device of the group keeping a share
// (reduce-scatter), so that Reduce then Replicate costs an all-reduce.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_COST_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_COST_H_

#include "optimizer/cost/cost.h"
#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// True if parallel operators lead from the one type to the other: copies are only ever added.
bool CanReshard(const TensorType& from, const TensorType& to);

// REQUIRES: CanReshard(from.type, to.type).
double ReshardUs(const CostModel& cost, const Placement& from, const Placement& to);
// Its two parts, for many on one machine: the reduction of the partial sums that become one, each
// device keeping a share, and all else.
double ReduceUs(const ReshardLevels& levels, const Placement& from, const Placement& to);
MoveLine MoveLineOf(const ReshardLevels& levels, const Placement& from, const Placement& to);

// Where the gradient of a tensor lies: copies and partials change places.
Placement GradientPlacement(const Placement& placement);

// Forward, and for training backward, over an edge from a producer's output to an operand.
double EdgeUs(const CostModel& cost, const Placement& produced, const Placement& needed,
              bool gradient);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_COST_H_
