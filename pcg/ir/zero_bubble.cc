#include "pcg/ir/zero_bubble.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace isomer {

absl::Status CheckZeroBubble(const ZeroBubble& zero_bubble, int64_t steps_between_flushes) {
  constexpr int32_t kMostInFlight = 1 << 20;
  if (zero_bubble.most_in_flight < 0 || zero_bubble.most_in_flight > kMostInFlight) {
    return absl::InvalidArgumentError(absl::StrCat("zero_bubble: ", zero_bubble.most_in_flight,
                                                   " micro-batches in flight: there are 1 to ",
                                                   kMostInFlight, ", or 0 for 1F1B"));
  }
  for (int32_t time : {zero_bubble.forward, zero_bubble.backward, zero_bubble.weights}) {
    if (time >= 1 && time <= ZeroBubble::kMostTime) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("zero_bubble: a time of ", time, ": times are 1 to ", ZeroBubble::kMostTime));
  }
  if (zero_bubble.splits() && steps_between_flushes > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("zero_bubble: backward passes in two halves do not go with ",
                     steps_between_flushes, " steps between flushes"));
  }
  return absl::OkStatus();
}

}  // namespace isomer
