// Polynomials as texts that are equal only if the polynomials are.
//
// Equal monomials are added up, whatever their bound indices are called and in whatever order sums,
// maxima and factors come; maxima and minima are in the normal form of a lattice (lattice.h).
#ifndef ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_TEXT_H_
#define ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_TEXT_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "verifier/elements/guards.h"
#include "verifier/elements/lattice.h"
#include "verifier/elements/polynomial.h"

namespace isomer {

using IndexNames = std::map<int, std::string>;
IndexNames NamesOf(const Ranges& ranges);

// `ranges` and `names` are of the free indices. Errors: too large for a normal form.
absl::StatusOr<std::string> PolynomialText(const Polynomial& polynomial, const Ranges& ranges,
                                           const IndexNames& names);

// The polynomial as maxima and minima of atoms, which are polynomials that are neither.
absl::StatusOr<LatticeTerm> LatticeTermOf(const Polynomial& polynomial, const Ranges& ranges,
                                          const IndexNames& names);

// The factor if the polynomial is that factor, a pointwise maximum, times 1 or -1, `*sign`.
const Factor* OnlyMaximum(const Polynomial& polynomial, int* sign);

// The integer if the polynomial is a small one. These are in order over every number type
// (pcg/evaluation/number.h).
std::optional<int64_t> OnlySmallInteger(const Polynomial& polynomial);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_POLYNOMIAL_TEXT_H_
