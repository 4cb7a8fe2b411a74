// That the tasks of a schedule do what the graph says: the second half of CheckSchedule.
#ifndef ISOMER_PCG_SCHEDULE_CHECK_CHECK_CALLS_H_
#define ISOMER_PCG_SCHEDULE_CHECK_CHECK_CALLS_H_

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Every buffer says what it holds: a box of a partial of a tensor, or a share of the gradient of a
// buffer that does. Ok if every task keeps that promise for what it writes, given that it holds for
// what it reads:
//   - a compute task reads its operands' boxes and partials, and writes its own shard;
//   - what moves is put together from pieces that do not overlap, of all partials that are summed
//     (Partition, Combine, Replicate and Reduce are identities on meanings);
//   - each gradient task reverses one compute task, and reads what that saved; each backward
//     transfer reverses one forward transfer; none is left out whose gradient is wanted;
//   - each share of a gradient is used once; each part of the loss gets the seed, once for all
//     copies;
//   - outputs, parameters and gradients that are asked for are unloaded.
// REQUIRES: tasks name nodes, buffers and devices that there are, and write a buffer once.
absl::Status CheckCalls(const Graph& graph, const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_CHECK_CHECK_CALLS_H_
