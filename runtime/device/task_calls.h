// The calls of kernels that tasks of a schedule are.
#ifndef ISOMER_RUNTIME_DEVICE_TASK_CALLS_H_
#define ISOMER_RUNTIME_DEVICE_TASK_CALLS_H_

#include <cstdint>

#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/backend.h"

namespace isomer {

// REQUIRES: RunsKernel(schedule.tasks[t]).
KernelCall CallOfTask(const Graph& graph, const Schedule& schedule, int32_t t);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_TASK_CALLS_H_
