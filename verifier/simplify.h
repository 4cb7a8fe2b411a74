// Rewrites inside polynomials that their texts do not see:
//   - 1/(c*f*g) is 1/c * 1/f * 1/g and 1/(1/f) is f (1/0 stays what it is: 0 in a field, infinite
//     in floats, and both sides agree on it);
//   - a maximum over an index that nothing depends on is its argument; maxima of maxima are one,
//     and max_i max(f, g) is max(max_i f, max_i g); a range cut by a guard is a maximum over each
//     piece;
//   - a sum whose range guards inside of functions cut is the sum over the pieces;
//   - look-ups at one index are one look-up;
//   - the choice of the larger of two is their maximum, of the smaller their minimum;
//   - a maximum that one of its arguments absorbs is that argument.
#ifndef ISOMER_VERIFIER_SIMPLIFY_H_
#define ISOMER_VERIFIER_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "verifier/guards.h"
#include "verifier/polynomial.h"

namespace isomer {

// `ranges` are those of the free indices.
absl::StatusOr<Polynomial> Simplified(const Polynomial& polynomial, const Ranges& ranges);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_SIMPLIFY_H_
