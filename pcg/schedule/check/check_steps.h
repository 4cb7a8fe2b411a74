// Steps without a flush in between: a part of CheckSteps.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_STEPS_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_STEPS_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Ok if
//   - each step has buffers of its own for those of `one`, but all have the optimizer's states, and
//     weights that are updated have two versions in turn (weight_versions.h);
//   - the tasks of `all` are those of `one` for each step, on the step's buffers, of an update the
//     weights that it changes on those of the other version; both versions are loaded, the last is
//     unloaded;
//   - in the order of `all`, each buffer is written and read as if the steps were one after the
//     other.
// REQUIRES: CheckSchedule(graph, one) is ok; tasks of `all` name buffers that there are.
absl::Status CheckRepetition(const Graph& graph, const Schedule& one, const Schedule& all);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_STEPS_H_
