#ifndef ISOMER_RUNTIME_UPDATE_H_
#define ISOMER_RUNTIME_UPDATE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "pcg/tensor_type.h"
#include "pcg/weight_update.h"

namespace isomer {

// A step of the optimizer (pcg/weight_update.h has the formulas).
struct UpdateStep {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  int64_t number = 1;  // from 1
  double learning_rate = 0;
  double gradient_scale = 1;  // what a gradient is multiplied with first
};

// `updated` := what the step makes of `count` weights, in float32, rounded once to `dtype`, which
// `gradient` is of, too. REQUIRES: IsFloat(dtype); NumStates(optimizer) states of `count` numbers;
// `updated` is `weights`, or they do not overlap.
void UpdateWeights(const UpdateStep& step, DataType dtype, const void* gradient, int64_t count,
                   const void* weights, void* updated, absl::Span<float* const> states);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_UPDATE_H_
