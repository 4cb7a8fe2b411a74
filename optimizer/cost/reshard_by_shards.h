// Cost of a resharding, shard by shard: intersects every new shard with every old one. The
// reference for reshard_by_digits.h; used where placements have no digits in common.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// REQUIRES: CanReshard(from.type, to.type), views without micro-batches.
MoveLine ReshardByShards(const CostModel& cost, const Placement& from, const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_
