// Families: rules op(x0, ..) -> after(op(before(x0), ..)) that spread one iteration dim of a call
// over d times as many tasks, whatever the operator's attributes are.
//
// Their condition kSplitsDim names the axes that the dim leads. Types are proved once for all
// declarations: the degrees of all other dims, and which operands hold partials, are the same on
// both sides, so that what a call requires differs in the degree of this dim alone. Values rest on
// the lemma that pieces of a partitionable dim, of a spatial dim with their halos, give pieces
// (partial sums) of the outputs. For these operators that lemma is checked by evaluation at
// representative calls (piece_check.h), not proved, and its id says so: "checked:pieces_of_conv2d".
#ifndef ISOMER_VERIFIER_FAMILY_PROOF_H_
#define ISOMER_VERIFIER_FAMILY_PROOF_H_

#include <optional>
#include <set>
#include <string>

#include "verifier/counterexample.h"
#include "verifier/smt.h"

namespace isomer {

// Marks lemmas, and through them rules, that are checked and not proved.
inline constexpr char kCheckedPrefix[] = "checked:";

struct FamilyProof {
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::set<std::string> lemmas;
  std::string why;
  std::optional<Counterexample> counterexample;  // set if and only if kInvalid
};

// kUnknown with a reason if `rule` is no family.
FamilyProof ProveFamily(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILY_PROOF_H_
