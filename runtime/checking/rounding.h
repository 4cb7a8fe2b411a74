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
  // How often a result is rounded to a low precision besides, before all its parts are added up:
  // partial sums, micro-batches' gradients. Of what is computed forward, and of gradients; 0 in
  // float32, where parts are another order of the same sum.
  int64_t forward_parts = 0, gradient_parts = 0;

  // "bfloat16, sums of 8 parts, gradients of 64 parts".
  std::string ToString() const;
};
Rounding RoundingOf(DataType precision, const Schedule& schedule, const Fp8Products& fp8 = {});

// Masks are made of -infinity or of the least number of a type, in front of a softmax, for which
// there is no difference: numbers from 2^127 on, half of what float32 holds, stand for infinity.
// They are no results of arithmetic, so rounding leaves them as they are.
inline bool StandsForInfinity(double value) { return std::abs(value) >= 0x1p127; }

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKING_ROUNDING_H_
