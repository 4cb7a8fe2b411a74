#ifndef ISOMER_OPTIMIZER_COST_MEMORY_COST_H_
#define ISOMER_OPTIMIZER_COST_MEMORY_COST_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Where a device will have what, and what it takes beside its arena: the most that a library of
// kernels has of its own.
struct PredictedMemory {
  MemoryPlan plan;
  std::vector<int64_t> bytes_per_device;  // all of it
};
// Says of every task of the schedule what workspace its kernel has (Task::workspace_bytes), and
// plans memory with it: what the profile (may be null) has measured, else what workspace.h says for
// devices that are `cores`.
PredictedMemory PredictMemory(const Profile* profile, const Graph& graph, bool cores,
                              int32_t num_queues, Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_MEMORY_COST_H_
