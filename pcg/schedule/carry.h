#ifndef ISOMER_PCG_SCHEDULE_CARRY_H_
#define ISOMER_PCG_SCHEDULE_CARRY_H_

#include "pcg/schedule/schedule.h"

namespace isomer {

// Whether the task moves to an input: that is what carries of states do (pcg/ir/states.h). They are
// of no slot of a pipeline: what the last stage makes may go back to the first, which is the next
// step's.
inline bool IsCarry(const Schedule& schedule, const Task& task) {
  return task.phase == Phase::kForward && task.kind != TaskKind::kFeed && !task.writes.empty() &&
         task.writes[0] != kNoBuffer && schedule.buffers[task.writes[0]].role == BufferRole::kInput;
}

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CARRY_H_
