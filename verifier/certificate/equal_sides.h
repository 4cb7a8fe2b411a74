// Whether two sides compute the same at the types, attributes and sizes that they have.
//
// This is translation validation: nothing is asked but what these calls say, so that who made them,
// by what rule, and who proved that rule is no matter. In this order, and the first that decides
// is believed:
//   same term     parallel operators are identities on meanings (docs/proof.md, Theorem 1, which
//                 type inference decides of every call that is spread), and partials side by side
//                 mean their sum. Without them most sides are one term;
//   theorem       of the structure of declarations (rules/theorems/structure.h);
//   normal form   the elements of both sides, written out (verifier/elements/normal_form.h).
#ifndef ISOMER_VERIFIER_CERTIFICATE_EQUAL_SIDES_H_
#define ISOMER_VERIFIER_CERTIFICATE_EQUAL_SIDES_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

// By number of the input.
using InputNumbers = std::map<int, double>;

enum class EqualBy { kSameTerm, kTheorem, kNormalForm };
const char* EqualByName(EqualBy by);

// Two sides without parallel operators, equal calls as one call, dead calls left out.
struct ErasedSides {
  ConcreteSide source, target;
  bool same = false;  // they are one term
};
ErasedSides WithoutParallel(const ConcreteSide& source, const ConcreteSide& target);

// By what the sides, over the same inputs, have equal outputs over the reals, and the target is
// defined, with finite gradients, where the source is. Types are the caller's to compare. Theorems
// name themselves in `lemmas`.
// `numbers`: the inputs that are constants, all of whose elements are a number.
// The error says that nothing here decides it; it refutes nothing.
absl::StatusOr<EqualBy> EqualSides(const ConcreteSide& source, const ConcreteSide& target,
                                   std::set<std::string>* lemmas, const InputNumbers& numbers = {});

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_EQUAL_SIDES_H_
