// Algebraic families: rules between an operator and Concat, Split, Add or elementwise operators, of
// any attributes, such as
//
//   conv2d(x, concat_0(w, u); stride, padding) -> concat_1(conv2d(x, w; ..), conv2d(x, u; ..))
//
// Where attributes are constants and sizes may be symbols, both halves of the theorem are proved
// from the declarations (ProveElements here, and type_proof.h). Otherwise:
//
// Types. Let v be the dim that the rule cuts. Its degree is 1 on both sides, since it leads a dim
// that a Concat or Split works along, or is so by condition; and every other dim has one size and
// one degree on both sides. So what a call requires of its operands does not depend on sizes but
// through the structure of its declaration: which dims lead which axes, and which operands it is
// linear in. For each structure, that of a representative call, types are proved for all degrees,
// copies and partials, in exponents (type_proof.h).
//
// Values. By the structure of the declarations (rules/theorems/structure.h): the condition
// by_structure, without which such a rule is not proved, admits just the calls at which a theorem
// shows the sides equal. Both sides are evaluated, too, at representative calls, in doubles and in
// a prime field, in which element functions are random functions; and at all sizes near them that
// the rule admits. Without the condition the lemma says that the rule was evaluated only:
// "checked:elements_of_conv2d_concat".
#ifndef ISOMER_VERIFIER_PROVING_ALGEBRA_PROOF_H_
#define ISOMER_VERIFIER_PROVING_ALGEBRA_PROOF_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "verifier/elements/term.h"
#include "verifier/families/family_proof.h"

namespace isomer {

struct Goal {
  TermId left, right;
};

// Whether every goal's sides have the same elements for all sizes, by their normal forms alone;
// they are seen to agree at small sizes too. The lemma that this proves is named after their
// operators. Errors: a term that has no normal form.
absl::StatusOr<bool> ProveElements(const TermPool& pool, const std::vector<Goal>& goals,
                                   std::string* lemma);

// kUnknown with a reason if `rule` has parallel operators, or no representative call is one of it.
FamilyProof ProveAlgebra(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PROVING_ALGEBRA_PROOF_H_
