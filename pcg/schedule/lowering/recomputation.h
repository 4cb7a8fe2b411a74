// What the backward pass computes again instead of keeping (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016). Internal to pcg/schedule.
//
// ScheduleOptions::recomputed names nodes whose results are not kept. The first gradient that needs
// one of them has the tasks that made it repeated in front of it, moves between devices included,
// back to what is kept: into new buffers, each of the same box, partial and micro-batch as the one
// that it stands for. Each task is repeated at most once; what it fills lives until the last
// gradient that reads it. Of a chain of layers all of whose results but the last are recomputed,
// the memory is thus that of the last results and of one layer, the time that of another forward
// pass, as the repeated tasks of a layer follow the gradients of the next.
//
// Kept all the same: the inputs and outputs of the graph, what another tensor that is kept shares,
// and what comes from another stage of a pipeline, which would have to send it again.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_RECOMPUTATION_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_RECOMPUTATION_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/lowering/builder.h"

namespace isomer {

class Recomputation {
 public:
  // `builder`, which has the forward tasks, must outlive this.
  explicit Recomputation(ScheduleBuilder* builder);

  // Where the backward pass finds what forward buffer `id` held: there, or where the tasks that
  // made it, which this adds a second time unless they have been, put it.
  BufferId Available(BufferId id);

  // Of forward task `t`, the one that repeats it, where one has been added; else itself.
  size_t LastOf(size_t t) const {
    return repeated_by_.empty() || repeated_by_[t] < 0 ? t : repeated_by_[t];
  }

  // Forward buffer `id` is not kept for the backward pass.
  bool IsDropped(BufferId id) const { return !dropped_.empty() && dropped_[id]; }

 private:
  void FindDropped();
  void Repeat(int32_t t);

  ScheduleBuilder& builder_;
  std::vector<bool> dropped_;         // by forward buffer
  std::vector<int32_t> writer_;       // by forward buffer: its task
  std::vector<BufferId> again_;       // by forward buffer: what stands for it, or kNoBuffer
  std::vector<int32_t> repeated_by_;  // by forward task: the one that repeats it, or -1
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_RECOMPUTATION_H_
