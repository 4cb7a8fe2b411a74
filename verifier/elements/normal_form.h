// Normal forms of terms: a proof, for all sizes, that two terms have the same elements.
//
// Both terms are read as polynomials (polynomial.h) at a symbolic element. The element's indices
// are cut into regions in which every guard of an index alone is decided (a Concat of sizes N and
// N' cuts its axis at N). In each region the polynomials are brought into a normal form:
//   - a guard of one bound index narrows its range: sum_{k<K+K'} [k<K] f(k) = sum_{k<K} f(k);
//   - ranges start at 0, and ranges of one element are substituted;
//   - quotients and maxima are taken apart, and choices decided, in every case of their conditions
//     (simplify.h);
//   - where that is not enough, maxima are one of their arguments, in every order of these
//     (lattice.h): relu(x) - x is relu(-x), since it is where x > 0 and where x < 0;
//   - if divisors are not zero, both are multiplied by these where that is not enough (divisors.h);
//   - equal monomials are added up, whatever their bound indices are called (polynomial_text.h).
// Equal normal forms are equal functions. Different ones prove nothing: the method is incomplete.
#ifndef ISOMER_VERIFIER_ELEMENTS_NORMAL_FORM_H_
#define ISOMER_VERIFIER_ELEMENTS_NORMAL_FORM_H_

#include <map>

#include "absl/status/statusor.h"
#include "verifier/elements/guards.h"
#include "verifier/elements/polynomial.h"
#include "verifier/elements/simplify.h"
#include "verifier/elements/term.h"

namespace isomer {

// What is known of exp: nothing, as of other functions; or that exp(f + g) = exp(f) * exp(g). A
// prime field, in which rules are evaluated besides, has no such function.
enum class Exp { kAnyFunction, kOfSums };

// What is known of divisors: nothing; or that they are not zero, as where both sides are defined.
enum class Divisors { kAny, kNotZero };

// True if the terms have the same shape and, for all sizes >= 1 that the symbols stand for, the
// same elements, wherever divisors are as said. False: no proof. Errors: a term that has no
// polynomial. `numbers`: variables all of whose elements are a number, by index.
absl::StatusOr<bool> ProvablyEqual(const TermPool& pool, TermId a, TermId b, Divisors divisors,
                                   const std::map<int, double>& numbers = {},
                                   Exp exp = Exp::kAnyFunction);

// The normal form of `polynomial` with its free indices in `ranges`, in a case.
absl::StatusOr<std::string> NormalForm(const Polynomial& polynomial, const Ranges& ranges,
                                       Case* in_case);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_NORMAL_FORM_H_
