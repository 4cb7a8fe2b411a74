// What comes from the host and goes back to it: a part of CheckSchedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_HOST_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_HOST_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Ok if every parameter is stored as its shards, or, of sharded weights, in parts that are the
// shard together.
absl::Status CheckStored(const Graph& graph, const Schedule& schedule);

// Ok if each buffer of a state's input (pcg/ir/states.h), and of no other, gets a next value, once;
// which one, CheckCalls says.
absl::Status CheckCarries(const Graph& graph, const Schedule& schedule);

// Ok if what is unloaded is one copy of each shard of the outputs that are no states, and every
// element once of the parameters, in training, and of their gradients, if they are kept.
absl::Status CheckUnloads(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_HOST_H_
