// What a resharding costs, shard by shard: for every shard that is needed, what each of the old
// ones has of it. The plainest form of the cost, which reshard_by_digits.h must agree with; used
// where placements have no digits in common.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_

#include "optimizer/cost/reshard_levels.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// REQUIRES: CanReshard(from.type, to.type), views without moments.
MoveLine ReshardByShards(const CostModel& cost, const Placement& from, const Placement& to);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_BY_SHARDS_H_
