// The schedule of a plan on many devices, with one device of each class that does the same: what a
// simulation of 16,384 devices looks at.
//
// device_classes.h says how a plan on fewer devices is found whose schedule has the same tasks in
// the same order. Here these tasks get the sizes that they have in the schedule of all devices:
//
//   devices    the first of each class, by its number in the machine
//   buffers    shards of the plan's own types, at the places that those devices have
//   compute    work of the plan's own types
//   collectives  the group of all devices: along every digit in which the devices that are there
//              differ, each of its values (Schedule::GroupOf); bytes of such a group
//   transfers  counted for those like them from or to devices that are not there (CountOf)
//
// What a device does with whom, and how long each task takes, is then that of all devices. Exact
// are also the queues of devices and of the links within and out of a node, as long as `whole`
// devices of a node are there together, and devices that are not there would not have other work
// than their class: an owner (UpdateMethod::kOwner) owns more here than among all, so that what it
// takes is an upper bound. Where digits were widened (ClassOptions), the counts of transfers are an
// estimate. Of devices that do the same, one is kept (symmetric_devices.h).
#ifndef ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SCHEDULE_H_
#define ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SCHEDULE_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// The plan's graph with its own types, and the schedule of one device of each class; that of all
// devices (LowerPlan) if no fewer stand for them. `shards` and `shardings` of the schedule are
// empty. `wholes`: ClassOptions::whole to try in turn, until at most `most_shards` are left: of all
// nodes and micro-batches together, which is what lowering and simulating take.
// ResourceExhausted: there are more than `limit`, whatever stands for what.
//
// `made`: the micro-batches of the schedule, if that is fewer than the plan has: its first and
// last, and so many of those between them, which are alike. All of them, if they are not, or if it
// is less than LeastMade.
// `alike`: ClassOptions::alike.
absl::StatusOr<LoweredPlan> LowerPlanInClasses(const Plan& plan, absl::Span<const int64_t> wholes,
                                               int64_t most_shards, int64_t limit,
                                               int64_t made = std::numeric_limits<int64_t>::max(),
                                               int64_t alike = 0);

// Of a plan of so many micro-batches; all, if none stand for others.
int64_t LeastMade(int64_t moments);

// Whether that is what the last of `wholes` leaves: fewer devices than a node has then meet at its
// links than among all, so that what they wait for each other is missing. Nothing of the plan but
// its graph and views is looked at.
bool LacksDevicesOfNodes(const Plan& plan, absl::Span<const int64_t> wholes, int64_t most_shards,
                         int64_t made = std::numeric_limits<int64_t>::max(), int64_t alike = 0);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_SYMMETRY_CLASS_SCHEDULE_H_
