// What a run of a pipeline's slots takes: each stage does its slots in their order, each as soon as
// what it needs is there.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_SLOT_RUN_H_
#define ISOMER_PCG_SCHEDULE_ORDER_SLOT_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "pcg/schedule/order/pipeline.h"

namespace isomer {

// Of a chunk and a micro-batch; `backward`: without gradients of weights if these have slots of
// their own. A message is from one stage to another, while both go on.
struct SlotTimes {
  int64_t forward = 1, backward = 1, weights = 1, message = 0;
};

struct SlotRun {
  int64_t makespan = 0;
  // From a stage's first slot to the end of its last, the longest: what a step takes where the next
  // one follows at once.
  int64_t longest_stage = 0;
  int64_t busy = 0;                     // of the stage that does most
  std::vector<int64_t> most_in_flight;  // by stage: micro-batches, each in a chunk
};

// `slots`: by stage. Absent: they wait for each other in a circle.
std::optional<SlotRun> RunSlots(const PipelineShape& shape,
                                const std::vector<std::vector<PipelineSlot>>& slots,
                                const SlotTimes& times);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_SLOT_RUN_H_
