#ifndef ISOMER_RUNTIME_CPU_EXPERT_CHOICE_H_
#define ISOMER_RUNTIME_CPU_EXPERT_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace isomer {

// Which experts tokens choose, one token after another: whoever computes with it and whoever counts
// the loads have to agree.
class ExpertChoice {
 public:
  ExpertChoice(int64_t experts, int64_t choices)
      : choices_(choices), biased_(experts), order_(experts) {}

  // The experts of the highest scores, the best first; of equal ones, the first. Valid until the
  // next call. `scores` has one for each expert, and so has `bias`, which is added, or null.
  absl::Span<const int64_t> Of(const float* scores, const float* bias);

 private:
  const int64_t choices_;
  std::vector<float> biased_;
  std::vector<int64_t> order_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_EXPERT_CHOICE_H_
