#ifndef ISOMER_RUNTIME_CHECKING_MEASURE_FP8_ERRORS_H_
#define ISOMER_RUNTIME_CHECKING_MEASURE_FP8_ERRORS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "pcg/profile/fp8_errors.h"
#include "runtime/device/backend.h"
#include "runtime/execution/host_values.h"

namespace isomer {

// Takes the first step of the plan in float32, in bfloat16, and with each product with weights in 8
// bits by itself: two steps more than there are such weights. `progress` is called after each, with
// how many there are. Errors: a number that is not finite, and what ends a step.
absl::StatusOr<Fp8Errors> MeasureFp8Errors(const Plan& plan, Fp8Scaling scaling,
                                           const HostValues& weights, const HostValues& inputs,
                                           Backend* backend,
                                           const std::function<void(int64_t steps)>& progress);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_MEASURE_FP8_ERRORS_H_
