// Fractions without divisors: a/b is c where a is b c and b is not 0.
//
// A polynomial's factor 1/b that stands on its own, not inside of a function, is of a quotient that
// is computed: where that is a number, b is not 0. So two polynomials are equal there if they are
// when both are multiplied by b, in which 1/b then goes.
#ifndef ISOMER_VERIFIER_ELEMENTS_DIVISORS_H_
#define ISOMER_VERIFIER_ELEMENTS_DIVISORS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "verifier/elements/guards.h"
#include "verifier/elements/polynomial.h"

namespace isomer {

// Multiplies both by the least power of one of their divisors that takes it away, and returns the
// divisor; nullopt if they have none. A divisor is of the free indices alone, whose ranges are
// `region`, and of a monomial without guards there, which is there whatever the indices are. Bound
// indices get new names from *next_bound on.
absl::StatusOr<std::optional<Polynomial>> TakeAwayDivisor(const Ranges& region, int* next_bound,
                                                          Polynomial* a, Polynomial* b);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_DIVISORS_H_
