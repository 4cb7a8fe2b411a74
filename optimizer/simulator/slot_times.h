// What the slots of a pipeline take: forward, and the two halves of backward passes.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_SLOT_TIMES_H_
#define ISOMER_OPTIMIZER_SIMULATOR_SLOT_TIMES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/order/pipeline.h"

namespace isomer {

// The pipeline that the plan's schedule is, with all of its micro-batches.
absl::StatusOr<PipelineShape> ShapeOfPlan(const CostModel& cost, const Plan& plan);

// Sets the times of plan->zero_bubble to those of all tasks of a micro-batch, in proportion, with
// what the devices of a stage exchange. REQUIRES: backward passes are split.
absl::Status SetSlotTimes(const CostModel& cost, Plan* plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_SLOT_TIMES_H_
