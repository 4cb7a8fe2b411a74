// Where the backward pass begins. Internal to the lowering.
//
// The loss is one number: calls make parts of it, moves sum these up and bring them to where it is
// read. A move is linear, so its gradient is known without computing: what it reads gets the sum of
// the gradients of what that is moved to. Hence each device fills in the gradient of what its own
// call made of the loss; none waits until the loss is summed, or until a one comes back from there.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_LOSS_SEEDS_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_LOSS_SEEDS_H_

#include <map>

#include "absl/status/statusor.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// By buffer, the gradient of the loss (ScheduleOptions::seed) with respect to what calls, or the
// host, made of it. REQUIRES: there are the tasks of the forward pass, and no others.
// Errors: kInvalidArgument: there is no such output, or it is not one float.
absl::StatusOr<std::map<BufferId, double>> FindLossSeeds(const ScheduleBuilder& builder);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_LOSS_SEEDS_H_
