// The order of micro-batches where backward passes are two halves (pcg/ir/zero_bubble.h).
//
// A stage has three slots for each micro-batch: F forward, B the gradients of data, W those of
// weights. F and B wait for other stages, W for B alone. One list scheduler makes the order of all
// stages, in the time that slots take in proportion:
//
//   - whenever a stage is free it takes an F or a B, whichever can start first; of two that can at
//     once the one that is not what it did last;
//   - a W if there is none that can start before the W would be done: so W fill bubbles. Or before
//     a part of it would be, if W are long: of 0, 1/4, 1/2 and all what makes the shortest order of
//     8 micro-batches a stage, beside the order that is made as if F, B and W took the same;
//   - an F only if fewer than `most_in_flight` micro-batches are between their F and their W, and
//     fewer than the stage's share of that between their F and their B. The share falls from all of
//     it on the first stage to 1 on the last, as the way back from there gets shorter.
//
//     S = 3, n = 4, 3 in flight
//     stage 0   F0 F1 F2       B0 W0 F3 B1 W1    B2 W2 B3 W3
//     stage 1      F0 F1    B0 F2 B1 W0    F3 B2 W1 W2 B3 W3 ..
//     stage 2         F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
//
// With S in flight that is ZB-H1, with 2 S - 1 ZB-H2 (Qi et al., 2024), whose bubbles are
// (S - 1) (F + B - W) and (S - 1) (F + B - 2 W) of the time that a stage is at work.
//
// A stage may have several chunks of the model. Where the way through them folds, so that the first
// and the last stage share devices, two chunks and 2 S in flight are ZB-V (same paper): with as
// much memory as 1F1B, and nearly no bubbles if F, B and W take as long. A micro-batch then enters
// the first only if there is room for the others: that of the least number can always go on.
#ifndef ISOMER_PCG_SCHEDULE_ORDER_ZERO_BUBBLE_ORDER_H_
#define ISOMER_PCG_SCHEDULE_ORDER_ZERO_BUBBLE_ORDER_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/order/pipeline.h"

namespace isomer {

struct ZeroBubbleSchedule {
  std::vector<std::vector<PipelineSlot>> slots;  // by stage
  int64_t makespan = 0;                          // in the times of PipelineShape::zero_bubble
  int64_t longest_stage = 0;                     // from its first slot to the end of its last
};

// REQUIRES: backward passes are split, and as many micro-batches may be in flight as a stage has
// chunks.
ZeroBubbleSchedule MakeZeroBubbleSchedule(const PipelineShape& shape);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_ORDER_ZERO_BUBBLE_ORDER_H_
