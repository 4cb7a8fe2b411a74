// What of a plan says how its steps are rounded: what it stores, and how many parts it adds up.
#ifndef ISOMER_RUNTIME_CHECKING_ROUNDING_H_
#define ISOMER_RUNTIME_CHECKING_ROUNDING_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "pcg/ir/fp8.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct Rounding {
  DataType precision = DataType::kFloat32;  // what it stores
  Fp8Products fp8 = {};                     // what it multiplies in 8 bits
  // In what devices sum gradients of weights. Of a plan in float32 all gradients are taken to be
  // stored in it: what rounding shares does to their sum depends on how they cancel each other,
  // which the model on one device does not show, and which rounding what makes them covers.
  DataType gradients = DataType::kFloat32;
  // How often a result is rounded to a low precision besides, before all its parts are added up:
  // partial sums, micro-batches' gradients. Of what is computed forward, and of gradients; 0 in
  // float32, where parts are another order of the same sum.
  int64_t forward_parts = 0, gradient_parts = 0;

  // "bfloat16, sums of 8 parts, gradients of 64 parts"; "float32, gradients in bfloat16 of 4
  // parts".
  std::string ToString() const;
};
Rounding RoundingOf(DataType precision, const Schedule& schedule, const Fp8Products& fp8 = {});

// What the results of a call are stored in, or the gradients of its operands.
inline DataType StoredIn(const Rounding& rounding, bool gradient) {
  return gradient && rounding.precision == DataType::kFloat32 ? rounding.gradients
                                                              : rounding.precision;
}
inline bool IsLow(const Rounding& rounding) {
  return StoredIn(rounding, /*gradient=*/true) != DataType::kFloat32;
}

// Masks are made of -infinity or of the least number of a type, in front of a softmax, for which
// there is no difference: numbers from 2^127 on, half of what float32 holds, stand for infinity.
// They are no results of arithmetic, so rounding leaves them as they are.
inline bool StandsForInfinity(double value) { return std::abs(value) >= 0x1p127; }

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_ROUNDING_H_
