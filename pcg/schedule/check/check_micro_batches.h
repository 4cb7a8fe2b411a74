// The order of micro-batches: a part of CheckSchedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_MICRO_BATCHES_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_MICRO_BATCHES_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Ok if
//   - tasks are of micro-batches that there are, and no device does two tasks of a node for one, or
//     for none;
//   - the calls and gradients in each device's program are those of its stage's slots, in order
//     (pipeline.h), unless what one micro-batch needs is made from others, for which there is no
//     such order.
// REQUIRES: tasks name nodes, buffers and devices that there are.
absl::Status CheckMicroBatches(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_MICRO_BATCHES_H_
