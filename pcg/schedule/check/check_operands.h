// What single tasks read and write: a part of CheckSchedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_OPERANDS_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_OPERANDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Ok if an accumulation's or update's buffers have boxes that fit, and a communication is the
// collective that it claims to be: over boxes of fitting shapes, of one data type, of as many bytes
// as it says. REQUIRES: the task names buffers that there are, of its devices.
absl::Status CheckOperands(const Graph& graph, const Schedule& schedule, int32_t t);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_OPERANDS_H_
