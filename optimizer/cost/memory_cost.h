#ifndef ISOMER_OPTIMIZER_COST_MEMORY_COST_H_
#define ISOMER_OPTIMIZER_COST_MEMORY_COST_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Predicted memory of each device: the plan of its arena, plus the maximum that a kernel library
// allocates itself.
struct PredictedMemory {
  MemoryPlan plan;
  std::vector<int64_t> bytes_per_device;  // arena and library
};
// Sets every task's kernel workspace (Task::workspace_bytes), and plans memory with it. Workspaces
// are those measured by the profile (may be null), else, for devices that are `cores`, those of
// workspace.h.
PredictedMemory PredictMemory(const Profile* profile, const Graph& graph, bool cores,
                              int32_t num_queues, Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_MEMORY_COST_H_
