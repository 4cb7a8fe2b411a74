#include "runtime/cpu/expert_choice.h"

#include <algorithm>
#include <numeric>

namespace isomer {

absl::Span<const int64_t> ExpertChoice::Of(const float* scores, const float* bias) {
  for (size_t e = 0; e < biased_.size(); ++e) {
    biased_[e] = scores[e] + (bias != nullptr ? bias[e] : 0);
  }
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + choices_, order_.end(),
                    [this](int64_t a, int64_t b) {
                      return biased_[a] != biased_[b] ? biased_[a] > biased_[b] : a < b;
                    });
  return absl::MakeConstSpan(order_).first(choices_);
}

}  // namespace isomer
