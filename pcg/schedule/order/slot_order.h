// The tasks of a pipeline in the order of their slots. Internal to pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_SLOT_ORDER_H_
#define ISOMER_PCG_SCHEDULE_ORDER_SLOT_ORDER_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// All tasks, each after its deps: those of slots in the order in which these start (`start`, per
// slot), others as soon as they can be, but for what keeps weights up to date.
//
// Devices have one queue of communication, and what a stage is late all stages before it are. So,
// behind the first stage, which delays nobody, gradients that the last micro-batch completes are
// synchronised when the stage has sent all that the one before it waits for. Where the next step
// follows without a flush there is no such end: synchronisation and updates of a step are spread
// over the slots of its device's next step, a few behind each, and done at the latest before
// somebody needs them.
//
// `slot_of`: per task; -1: of no micro-batch. REQUIRES: no circle of slots and deps.
std::vector<int32_t> OrderBySlots(const Schedule& schedule, const PipelineStages& stages,
                                  const std::vector<int32_t>& slot_of,
                                  const std::vector<int64_t>& start);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_SLOT_ORDER_H_
