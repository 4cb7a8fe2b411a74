// Judges a schedule without trusting the lowering that made it.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Ok if, running every device's program as it stands, with each communication waiting for all of
// its group:
//   - every device meets the communications it shares with others in a compatible order, all
//     programs end (no deadlock), and every task is in the programs of just its devices, in the
//     order that tasks have: memory plans and views go by that;
//   - tasks touch buffers of their own devices only, and no buffer before it is written; whatever a
//     device runs side by side, each task waits for those that write what it reads, and use what it
//     writes, and waits go round in no circle;
//   - every buffer is defined once; accumulations and in-place all-reduces change it only before
//     it is read, updates only after; no share of a gradient is lost;
//   - each communication is the collective that it claims to be, over boxes of fitting shapes, of
//     one data type, of as many bytes as it says;
//   - in training, each shard of each parameter that has a gradient is updated exactly once, after
//     its gradient is complete, and copies of it with a gradient that is summed, once, over all of
//     them;
//   - shards that are one buffer are copies; every device works through micro-batches in pipeline
//     order (check_micro_batches.h);
//   - what the host keeps of the forward pass (kOffload) is fetched as what it was, and read in the
//     backward pass only once it is there;
//   - tasks compute, move and differentiate what the graph says (check_calls.h);
//   - what is moved or summed has one layout, and what the host reads or writes is row-major
//     (CheckLayouts);
//   - calls that are said to move nothing do, and what lies in one place is not written over before
//     it was read (CheckViews);
//   - what lives at one time does not overlap in the memory plan (CheckMemory);
//   - queues that run beside each other do not touch what others use (CheckProgram).
// The error names the device, its instruction and the task. REQUIRES: it is of one step.
absl::Status CheckSchedule(const Graph& graph, const Schedule& schedule);

// Ok if `all`, of several steps without a flush in between (weight_versions.h), is for each of them
// what `one` is, with weights of two versions (check_steps.h); and if its programs end, tasks wait,
// micro-batches and buffers come and lie as above. REQUIRES: CheckSchedule(graph, one) is ok.
absl::Status CheckSteps(const Graph& graph, const Schedule& one, const Schedule& all);

// What LowerPlan made of the plan: of one step, or of several and then also of one.
absl::Status CheckLowered(const Plan& plan, const LoweredPlan& lowered);

// Ok if no two buffers of a device that live at one time (LiveRanges) overlap, nor do they and the
// scratch space of a communication.
absl::Status CheckMemory(const Schedule& schedule, const MemoryPlan& plan);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_H_
