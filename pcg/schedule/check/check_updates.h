// The part of CheckSchedule that looks at parameters. Internal to pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_UPDATES_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_UPDATES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// A task of the synchronisation of a parameter's gradient, or of its update: CheckUpdates looks at
// these, and at nothing else.
bool IsOfUpdate(const Schedule& schedule, const Task& task);

// Ok if, with `position` the place of each task in an order that the programs allow, in training
// each shard of each parameter that has a gradient
//   - is changed just once, by an update with its own gradient, complete and summed over all
//     copies, once;
//   - or, of a method that updates elsewhere, by the one gather or broadcast of what was updated
//     so;
// and every update has its own states, as many as its optimizer needs, that were filled with zeros;
// and where the parameter is in low precision, its own float32 master, and a gradient that, if it
// is a sum of several shares, is summed in float32.
absl::Status CheckUpdates(const Graph& graph, const Schedule& schedule,
                          const std::vector<int32_t>& position);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_UPDATES_H_
