// What the halo of an operand costs: the elements that a task reads beside its own piece of an
// image come from the devices that hold its neighbours (Sharding::OperandBox). They move however
// the operand came to be where it is, so that this is a part of the call's own time; the backward
// pass moves the same the other way, and adds it to the owners' gradients.
#ifndef ISOMER_OPTIMIZER_COST_HALO_COST_H_
#define ISOMER_OPTIMIZER_COST_HALO_COST_H_

#include <cstdint>

#include "optimizer/cost/cost.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

struct HaloCost {
  double us = 0;      // of the exchange, one way
  int64_t bytes = 0;  // of the largest buffer that holds a piece with its halo; 0: there is no halo
};

// The halo of operand `operand`, which is placed so. The time is that of one resharding: a launch,
// the slowest link's bytes, and a latency for every message of the busiest receiver, as the
// simulator counts them, but for what is packed. Sources are the shards of the same copy.
HaloCost CostOfHalo(const CostModel& cost, const Sharding& sharding, int operand,
                    const Placement& placement);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_HALO_COST_H_
