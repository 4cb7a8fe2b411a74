#ifndef ISOMER_OPTIMIZER_MEMORY_COST_H_
#define ISOMER_OPTIMIZER_MEMORY_COST_H_

#include <cstdint>
#include <vector>

#include "pcg/graph.h"
#include "pcg/profile.h"
#include "pcg/schedule/memory.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// What each device takes when it runs the schedule: its arena, as the runtime lays it out, and the
// largest workspace of its kernels. Workspaces are those that the profile (may be null) has
// measured, else those of workspace.h for devices that are `cores`.
std::vector<int64_t> BytesPerDevice(const Profile* profile, const Graph& graph,
                                    const Schedule& schedule, const MemoryPlan& memory,
                                    bool cores = false);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MEMORY_COST_H_
