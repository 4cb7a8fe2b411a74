// Rewrites inside polynomials that their texts do not see:
//   - 1/(c*f*g) is 1/c * 1/f * 1/g and 1/(1/f) is f (1/0 stays what it is: 0 in a field, infinite
//     in floats, and both sides agree on it);
//   - a maximum over an index that nothing depends on is its argument; maxima of maxima are one,
//     and max_i max(f, g) is max(max_i f, max_i g); a range cut by a guard is a maximum over each
//     piece;
//   - a sum over n + 1 elements of what does not depend on the index is n times that and that;
//   - a sum whose range guards inside of functions cut is the sum over the pieces;
//   - look-ups at one index are one look-up;
//   - the choice of the larger of two is their maximum, of the smaller their minimum;
//   - a maximum that one of its arguments absorbs is that argument; what is among the numbers that
//     another argument is the maximum of goes (covered_maxima.h);
//   - if so asked, exp(f + g) is exp(f) * exp(g), exp(0) is 1, 1/exp(f) is exp(-f), and a quotient
//     by a sum is one by exp(f) if all summands have that factor: a shift of softmax cancels;
//   - any other choice is one of its branches, in a case in which its condition is decided;
//   - if so asked, a maximum is one of its arguments, in a case in which these are in order.
#ifndef ISOMER_VERIFIER_ELEMENTS_SIMPLIFY_H_
#define ISOMER_VERIFIER_ELEMENTS_SIMPLIFY_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "verifier/elements/guards.h"
#include "verifier/elements/lattice.h"
#include "verifier/elements/polynomial.h"

namespace isomer {

// A case: which conditions of choices hold (are not 0), and in which order numbers are. Only those
// that are of free indices alone are known by their texts: others are many conditions, one for each
// element of a sum or maximum.
struct Case {
  std::map<std::string, bool> decided;
  std::optional<std::string> open;  // the first condition met that is not
  bool exp_of_sums = false;         // whether exp(f + g) is exp(f) * exp(g)
  // Maxima of what is of free indices alone are taken apart if there is an order.
  std::optional<Order> order;
  std::optional<std::string> open_atom;  // the first met that has no place in it
};

// `ranges` are those of the free indices.
absl::StatusOr<Polynomial> Simplified(const Polynomial& polynomial, const Ranges& ranges,
                                      Case* in_case);

// The positive integers that maxima are taken with.
void CollectConstants(const Polynomial& polynomial, std::set<int64_t>* constants);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_SIMPLIFY_H_
