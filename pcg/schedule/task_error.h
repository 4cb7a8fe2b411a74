// How errors name a task.
#ifndef ISOMER_PCG_SCHEDULE_TASK_ERROR_H_
#define ISOMER_PCG_SCHEDULE_TASK_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// "schedule: device 1, instruction 7: task 12 (all_reduce of %3 replicate): what". The device is
// the first that runs the task unless one is given.
absl::Status TaskError(const Graph& graph, const Schedule& schedule, int32_t t,
                       absl::string_view what, int32_t device = -1);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_TASK_ERROR_H_
