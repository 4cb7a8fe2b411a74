// Cost of exchanging an operand's halo: a task also reads elements next to its own shard of an
// image, which its neighbours have (Sharding::OperandBox). The exchange does not depend on where
// the operand came from, so it is part of the call's own time; the backward pass sends as much in
// the other direction, and adds it to the owners' gradients.
#ifndef ISOMER_OPTIMIZER_COST_HALO_COST_H_
#define ISOMER_OPTIMIZER_COST_HALO_COST_H_

#include <cstdint>

#include "optimizer/cost/cost.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

struct HaloCost {
  double us = 0;      // one way
  int64_t bytes = 0;  // largest buffer of a shard with its halo; 0: no halo
};

// The halo of operand `operand`, placed so. Timed like one resharding: a launch, the bytes of the
// slowest link, and a latency per message of the busiest receiver, as in the simulator but without
// packing. Sources are shards of the same replica.
HaloCost CostOfHalo(const CostModel& cost, const Sharding& sharding, int operand,
                    const Placement& placement);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_HALO_COST_H_
