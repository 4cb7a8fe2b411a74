// Calls that move nothing, and the buffers that are then one piece of memory.
//
// A Reshape between two products is no work: its result has the elements of its operand in their
// order. Its task stays, for what waits for it and for what it means, but does nothing, and its
// result lies where its operand does; so does the gradient of the operand where that of the result
// does. What is stored is kept apart, as it is updated in place while the rest of a step may still
// need it as it was.
//
// So it is with the share of a gradient that a call adds to the sum itself, or writes in its type
// (additions.h): adding it up is a view, and the share lies where the sum does.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_VIEWS_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_VIEWS_H_

#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Sets Task::is_view, of tasks in their final order: wherever a call keeps the order of its operand
// (KeepsOrder), and nothing is written over what somebody reads later.
void MarkViews(const Graph& graph, Schedule* schedule);

// Per buffer, the one whose bytes it has: of those that views join, the first; of shares, the
// sum's.
std::vector<BufferId> HoldersOf(const Schedule& schedule);

// Ok if every view keeps the order of what it reads, on one device, in one data type, and nobody
// reads a buffer after others were written in its place; and if what is added to a sum where it
// lies is added by the call that made it, to the sum as it is then, which that call does not read.
// The error names the task.
absl::Status CheckViews(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_VIEWS_H_
