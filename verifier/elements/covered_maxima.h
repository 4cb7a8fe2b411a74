// Arguments of a maximum that another one is never less than.
//
// max_{i,j} f(i,j) is no less than f at any place, nor than max_j f(i,j) at any i: what is among
// the numbers that a maximum is taken over adds nothing beside it, and so below minima.
#ifndef ISOMER_VERIFIER_ELEMENTS_COVERED_MAXIMA_H_
#define ISOMER_VERIFIER_ELEMENTS_COVERED_MAXIMA_H_

#include "absl/status/statusor.h"
#include "verifier/elements/guards.h"
#include "verifier/elements/polynomial.h"

namespace isomer {

// `maximum` is of the function kMax, its arguments simple. Its value without what is seen to be no
// larger than another argument, as a maximum of two, of which the first may be one of two, ..; or
// the only argument left. `ranges` are those of all indices around it.
absl::StatusOr<Polynomial> WithoutCovered(const Factor& maximum, const Ranges& ranges);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_COVERED_MAXIMA_H_
