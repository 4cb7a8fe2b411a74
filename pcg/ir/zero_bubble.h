// Backward passes in two halves.
//
// What comes before a call waits for the gradient of its data alone. The gradients of weights can
// be computed at any time behind it, and fill what would be the bubbles of a pipeline (Qi et al.,
// "Zero Bubble Pipeline Parallelism", 2024). How many micro-batches a stage may have begun and not
// finished decides how full they get:
//
//   S          ZB-H1: as many as the first stage of 1F1B has
//   2 S - 1    ZB-H2: the pipeline is full before the first backward pass
//
// pcg/schedule/order/zero_bubble_order.h makes the order from that.
#ifndef ISOMER_PCG_IR_ZERO_BUBBLE_H_
#define ISOMER_PCG_IR_ZERO_BUBBLE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace isomer {

struct ZeroBubble {
  static constexpr int32_t kMostTime = 1 << 16;

  // Micro-batches, each in one chunk of the model, that a stage has begun and not computed the
  // gradients of weights of; 0: backward passes are whole, and come in the order of 1F1B.
  int32_t most_in_flight = 0;
  // What a chunk takes for a micro-batch in proportion: forward, the gradients of data, and of
  // weights. The order is made for that.
  int32_t forward = 1, backward = 1, weights = 1;

  bool splits() const { return most_in_flight > 0; }
  friend bool operator==(const ZeroBubble&, const ZeroBubble&) = default;
};

// InvalidArgument: numbers that are none, or steps without flushes in between, which have the order
// of 1F1B.
absl::Status CheckZeroBubble(const ZeroBubble& zero_bubble, int64_t steps_between_flushes);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_ZERO_BUBBLE_H_
