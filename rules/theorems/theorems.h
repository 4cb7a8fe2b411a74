// The theorems of structure.h, each a search for the shape it speaks of. Internal to rules/.
#ifndef ISOMER_RULES_THEOREMS_THEOREMS_H_
#define ISOMER_RULES_THEOREMS_THEOREMS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "rules/language/rule.h"

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

// A theorem of docs/proof.md, as a search for the shape it speaks of.
struct Theorem {
  const char* name;
  const char* statement;
  // Whether both sides evaluate the same bodies at the same points, so that one is defined where
  // the other is. Of the others that is asked besides (domains.h).
  bool at_the_same_points;
  // Whether it says itself what may be done to a cast, which is no identity though its declaration
  // is. To the others casts are to be the same on both sides (domains.h).
  bool knows_casts;
  // How many calls of the kind of `call` the other side may have.
  size_t fewest, most;
  // Ok if the theorem shows the sides equal, of call `call` of `one` and the calls `others` of the
  // same kind of `many`; then `lemmas` gets its premises by name.
  absl::Status (*decide)(const Side& one, int call, const Side& many,
                         const std::vector<int>& others, std::set<std::string>* lemmas);
};
// All, in the order in which they are tried. A new one is a function below and a line in this list.
absl::Span<const Theorem> Theorems();

absl::Status AlikeOnPieces(const Side& whole_side, int whole, const Side& pieces_side,
                           const std::vector<int>& pieces, std::set<std::string>* lemmas);
absl::Status Commutes(const Side& inside, int call, const Side& outside,
                      const std::vector<int>& calls, std::set<std::string>* lemmas);
absl::Status ScalesSlices(const Side& inside, int call, const Side& outside,
                          const std::vector<int>& calls, std::set<std::string>* lemmas);
absl::Status TakesFactor(const Side& inside, int call, const Side& outside,
                         const std::vector<int>& calls, std::set<std::string>* lemmas);
absl::Status GrowsKernel(const Side& small, int call, const Side& large,
                         const std::vector<int>& calls, std::set<std::string>* lemmas);
absl::Status FoldsAffine(const Side& apart, int f, const Side& folded,
                         const std::vector<int>& calls, std::set<std::string>* lemmas);
absl::Status ActsAlongOtherAxes(const Side& one, int g, const Side& other,
                                const std::vector<int>& calls, std::set<std::string>* lemmas);

}  // namespace isomer::structure

#endif  // ISOMER_RULES_THEOREMS_THEOREMS_H_
