// Cost of resharding a tensor from its producer's placement to a consumer's. Bytes that a device
// has already are free; missing ones come from the nearest owner. Partial sums are reduced first,
// by a reduce-scatter within each group, so that Reduce then Replicate costs an all-reduce.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_COST_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_COST_H_

#include "optimizer/cost/cost.h"
#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// Whether parallel operators lead from one type to the other: copies are only ever added.
bool CanReshard(const TensorType& from, const TensorType& to);

// In microseconds. REQUIRES: CanReshard(from.type, to.type).
double ReshardUs(const CostModel& cost, const Placement& from, const Placement& to);
// Its two parts, for many queries on one machine: the reduce-scatter of the partial sums that
// become one, and all else.
double ReduceUs(const ReshardLevels& levels, const Placement& from, const Placement& to);
MoveLine MoveLineOf(const ReshardLevels& levels, const Placement& from, const Placement& to);

// Placement of a tensor's gradient: copies and partials change places.
Placement GradientPlacement(const Placement& placement);

// Microseconds of an edge from a producer's output to an operand: forward and, with `gradient`,
// backward.
double EdgeUs(const CostModel& cost, const Placement& produced, const Placement& needed,
              bool gradient);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_COST_H_
