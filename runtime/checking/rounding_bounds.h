// How large an error rounding may make in a step of a plan.
//
// The unoptimised model takes a step on one device several times, each time with other random noise
// in its kernels (rounding_noise.h), of kAmplitude times what rounding does; the first time without
// noise, but rounding what low precision stores. A tensor's bound is kMargin times the root mean
// square of how far, in the Euclidean norm, it came out from the step in float32. So nothing of the
// bound rests on the plan's own arithmetic but its precision and how many parts it adds up: an
// error of the plan does not make it wider.
//
// Where the step is smooth the movement is linear in the noise, and the bound is kAmplitude *
// kMargin = 5 times the deviation of noise, which is uniform in [-u, u]; that of rounding is
// uniform in [-u, u] of the binade's largest number, 0.74 of it for numbers of all sizes alike. So
// it is about 7 deviations of rounding. For a tensor of one number, a loss, the estimate from 8
// draws has 8 degrees of freedom: Student's t is beyond 7 once in 10,000 times. Larger tensors'
// movements hardly vary. Where it is not smooth (the side of a ReLU, the winner of a pooling
// window, an expert) a number jumps if it is nearer to the border than rounding moves it; the
// amplitude has the draws meet the same borders, and as many others again.
#ifndef ISOMER_RUNTIME_CHECKING_ROUNDING_BOUNDS_H_
#define ISOMER_RUNTIME_CHECKING_ROUNDING_BOUNDS_H_

#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "runtime/checking/compare.h"
#include "runtime/checking/rounding.h"
#include "runtime/device/backend.h"

namespace isomer {

inline constexpr int kRoundingDraws = 8;
inline constexpr double kAmplitude = 2, kMargin = 2.5;

// Of the outputs and, in training, of all gradients. Infinite where the noise makes what is no
// number, or the model itself does. Reference values may be rounded to float32, too. By the cpu
// backend, whatever is checked.
absl::StatusOr<StepBounds> RoundingBounds(const Model& model, const HostValues& weights,
                                          const HostValues& inputs, bool training,
                                          const Rounding& rounding);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_ROUNDING_BOUNDS_H_
