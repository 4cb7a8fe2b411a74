// Gradients that calls add to a sum, in place of writing them, or write in its type.
//
// A buffer that several calls read, or one call in several micro-batches, has a gradient that is
// the sum of the shares that each of them makes. Where the sum is there already, a call needs no
// memory for its share: it adds what it computes to the sum, in the type of that (Task::adds). The
// task that adds the share up stays, for what it means, but does nothing, as views do (views.h),
// and the share lies where the sum does. So it is with the first share, which is converted to the
// type of the sum: the call writes it in that type. Products thus add up weights' gradients of
// micro-batches in float32, unrounded, without a pass over memory of their own (what Megatron-LM
// calls fused gradient accumulation), and so does whatever reads a residual stream.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_ADDITIONS_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_ADDITIONS_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Sets Task::adds of gradients of calls, and makes views of the accumulations and conversions
// behind them, of tasks in their final order with their layouts and views: wherever a share is made
// after its sum was last changed, by a task of its device's compute queue, and nothing touches the
// sum in between. Calls that keep the order of their operand (KeepsOrder) make no share of their
// own that would be worth it.
void MarkAdditions(const Graph& graph, Schedule* schedule);

// What such a task reads becomes part of what it writes, a sum, or the first part of one.
inline bool IsOfSum(TaskKind kind) {
  return kind == TaskKind::kAccumulate || kind == TaskKind::kConvert;
}

// Per buffer, the sum where it lies and to which it is added there; kNoBuffer: none.
std::vector<BufferId> SumsInPlace(const Schedule& schedule);

// What a task reads and writes more than if it wrote write `w` in the type of its operand: not 0
// for shares of gradients alone.
int64_t ExtraBytes(const Graph& graph, const Schedule& schedule, const Task& task, size_t w);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_ADDITIONS_H_
