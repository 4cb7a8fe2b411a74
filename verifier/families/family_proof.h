// Families: rules with one call op(x0, ..) on both sides, and at most one parallel operator on each
// of its operands and outputs, whatever the operator's attributes are.
//
//   op(x0, x1)                   ->  combine(op(partition(x0), replicate(x1)))
//   op(combine(x0), x1)          ->  combine(op(x0, replicate(x1)))
//   partition(op(x0, x1))        ->  op(partition(x0), replicate(x1))
//   op(combine(x0), combine(x1)) ->  reduce(op(x0, x1))                     over a sum dim
//   op(reduce(x0), x1)           ->  reduce(op(x0, replicate(x1)))          if linear in x0
//
// and their ways back. One side spreads one iteration dim, or copies, or partials of the call over
// d times as many tasks as the other. The condition kSplitsDim names the axes that the dim leads.
//
// Theorem: for all declarations of the call, ranks, sizes, degrees, copies and partials, if the
// source type-checks and the conditions hold, then the target type-checks with the same output
// types, and the outputs are equal. Proof.
//   Types: in exponents (family_types.h). That is complete, because the parallel operators touch
//     only the degrees of axes that the split dim leads, copies, and partials; a call's
//     requirements mention all else (other dims' degrees, the tasks sharing a shard on their
//     account) by terms that are equal on both sides. All parallel operators keep the dtype,
//     whatever it is.
//   Values: parallel operators are identities on meanings, so both sides are the same call,
//   provided
//     that a spread call makes what the whole call makes. That is the lemma on pieces of the dim
//     (with halos, if it is spatial), on partial sums, and on linearity: theorems 1 and 2 of
//     docs/proof.md, whose premises type inference decides (Declaration::IsPartitionable,
//     IsLinearIn). It is evaluated, too, at representative calls (piece_check.h).
#ifndef ISOMER_VERIFIER_FAMILIES_FAMILY_PROOF_H_
#define ISOMER_VERIFIER_FAMILIES_FAMILY_PROOF_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "verifier/families/family_calls.h"
#include "verifier/refutation/counterexample.h"
#include "verifier/terms/smt.h"

namespace isomer {

// Marks lemmas, and through them rules, that are checked by evaluation and not proved: those do not
// ship.
inline constexpr char kCheckedPrefix[] = "checked:";

struct FamilyProof {
  SmtVerdict verdict = SmtVerdict::kUnknown;
  std::set<std::string> lemmas;
  std::string why;
  // Set if kInvalid. If it is set and kValid, one of proof and evaluation has a bug.
  std::optional<Counterexample> counterexample;
};

// Keeps what it has proved and checked of calls.
class FamilyProver {
 public:
  // kUnknown with a reason if `rule` is no family.
  FamilyProof Prove(const Rule& rule);

 private:
  struct Trials {
    int admitted = 0;
    std::optional<Counterexample> found;
    absl::Status pieces;  // the first task whose part is not that of the whole
  };
  void Try(const Rule& rule, const Binding& binding, bool check_pieces, Trials* trials);
  Trials TryCalls(const Rule& rule, const FamilySide& source, const FamilyCalls& calls);
  absl::Status PiecesOf(const Pattern& pattern, const Binding& binding);

  FamilyCallBook calls_;
  std::map<std::string, absl::Status> pieces_;  // of calls
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILIES_FAMILY_PROOF_H_
