// Activation offloading: values that lie in the host's memory from their last use in the forward
// pass to their first in the backward pass (Rhu et al., "vDNN", 2016; Peng et al., "Capuchin",
// 2020). Internal to pcg/schedule.
//
// ScheduleOptions::offloaded names nodes. Of each buffer of their results that the backward pass
// reads there is then a copy in the host's memory (kOffloaded), which an offload task writes and a
// fetch task reads into a buffer of the device's; the backward pass, with what it computes again,
// reads that.
//
// Copies run on queues of their own (program.h): an offload as soon as its value is made, and a
// fetch as soon as there is room for it. Their places among the tasks say for how long bytes are
// set aside: a value's are given to others when the kCopiesAhead-th value after it is used for the
// last time, and a fetched one has bytes from the first use of the kCopiesAhead-th before it. So
// much is in flight, and copies have the time of the tasks between to be over. A value for which
// both places would meet stays on the device: the last ones of the forward pass do.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_OFFLOAD_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_OFFLOAD_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

inline constexpr size_t kCopiesAhead = 4;

// Adds buffers and tasks, whose deps are then to be found again. Whether it did. REQUIRES: tasks
// are in their final order, and there are no programs yet. Error: there are several steps.
absl::StatusOr<bool> OffloadValues(Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_OFFLOAD_H_
