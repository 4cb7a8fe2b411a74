// The theorems of structure.h, each a search for the shape it speaks of. Internal to rules/.
#ifndef ISOMER_RULES_STRUCTURE_THEOREMS_H_
#define ISOMER_RULES_STRUCTURE_THEOREMS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/declaration.h"
#include "rules/rule.h"

namespace isomer::structure {

// A side with its declarations.
struct Side {
  const ConcreteSide* side;
  std::vector<Declaration> declarations;

  int num_calls() const { return static_cast<int>(side->calls.size()); }
  const ConcreteCall& call(int n) const { return side->calls[n]; }
  OpKind kind(int n) const { return call(n).op.kind(); }
  // The call that makes `ref`, or null: an input.
  const ConcreteCall* Maker(PatternRef ref) const {
    return ref.node < 0 ? nullptr : &call(ref.node);
  }
  // REQUIRES: `call` is one of this side's.
  const Declaration& DeclarationOf(const ConcreteCall& call) const {
    return declarations[&call - side->calls.data()];
  }
  std::vector<int> CallsOf(OpKind kind) const {
    std::vector<int> result;
    for (int n = 0; n < num_calls(); ++n) {
      if (this->kind(n) == kind) result.push_back(n);
    }
    return result;
  }
};

inline bool IsInput(PatternRef ref) { return ref.node < 0; }
// "A theorem does not speak of this": refutes nothing.
absl::Status No(const std::string& why);
// "matmul_is_linear_in_0"
std::string LinearLemma(OpKind kind, const std::vector<bool>& operands);

// Each is ok if its theorem shows the sides equal, and then adds its lemma.

// One call on one side, the same call on pieces of its operands on the other.
absl::Status AlikeOnPieces(const Side& whole_side, int whole, const Side& pieces_side,
                           const std::vector<int>& pieces, std::set<std::string>* lemmas);
// op(f(x), w) on one side, f(op(x, w)) on the other; f of one or two operands.
absl::Status Commutes(const Side& inside, int call, const Side& outside,
                      const std::vector<int>& calls, std::set<std::string>* lemmas);
// op(mul(x, s), w) on one side, mul(op(x, w), s') on the other: s has one size above 1, along an
// axis slice i of which makes slice i of the output; s' is s, or one of them is the other's
// Transpose.
absl::Status ScalesSlices(const Side& inside, int call, const Side& outside, int other,
                          std::set<std::string>* lemmas);
// op(scale(x; f), w) with a constant c on one side, op(x, w) with c * f on the other.
absl::Status TakesFactor(const Side& inside, int call, const Side& outside, int other,
                         std::set<std::string>* lemmas);
// op(x, w) on one side, op(x, pad(w)) on the other, by one zero before and after some dims.
absl::Status GrowsKernel(const Side& small, int call, const Side& large, int other,
                         std::set<std::string>* lemmas);
// f(op(x, w), p..) on one side, op(x, f(w, 0 p..)) + f(0, p..) on the other, where f goes by
// slices.
absl::Status FoldsAffine(const Side& apart, int f, const Side& folded,
                         std::set<std::string>* lemmas);

// g(f(x, w)) on one side, f(g(x), w) on the other, where f mixes slices along an axis, and g does
// the same, linearly, to each slice.
absl::Status ActsAlongOtherAxes(const Side& one, int g, const Side& other,
                                std::set<std::string>* lemmas);

}  // namespace isomer::structure

#endif  // ISOMER_RULES_STRUCTURE_THEOREMS_H_
