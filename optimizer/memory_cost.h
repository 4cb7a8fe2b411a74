#ifndef ISOMER_OPTIMIZER_MEMORY_COST_H_
#define ISOMER_OPTIMIZER_MEMORY_COST_H_

#include "pcg/graph.h"
#include "pcg/profile.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Says of every task of the schedule what its kernel takes beside its buffers
// (Task::workspace_bytes): what the profile (may be null) has measured, else what workspace.h says
// for devices that are `cores`. Memory that is planned then is what a device takes when it runs.
void SetWorkspaces(const Profile* profile, const Graph& graph, bool cores, Schedule* schedule);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MEMORY_COST_H_
