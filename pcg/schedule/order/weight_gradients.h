// Which tasks of a backward pass are of its second half.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_GRADIENTS_H_
#define ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_GRADIENTS_H_

#include <vector>

#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Per task, whether it is of a micro-batch and computes nothing but gradients of weights, or of
// what is made of weights alone: nothing that the same micro-batch does elsewhere waits for it. Of
// one tensor either all tasks that add to its gradient are, or none is, so that sums are in the
// order of micro-batches in both halves. Tasks of several groups of devices (PipelineStages::group)
// are none, and where backward passes are whole, no task is.
std::vector<bool> WeightGradients(const Schedule& schedule, const std::vector<int32_t>& group);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_WEIGHT_GRADIENTS_H_
