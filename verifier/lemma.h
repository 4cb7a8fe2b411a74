// Lemmas: equations between small terms, from which rules are proved.
//
// The table (lemma_table.cc) states each as text, "matmul(add(x,y),z) =
// add(matmul(x,z),matmul(y,z))". Lower-case letters are tensors; in braces, letters are attributes:
// a, b, u, v axes, S, R sizes of parts, f, g factors; "a^uv" is the axis a after u and v were
// exchanged; ".0" is an output. A lemma does not say for which ranks, axes and broadcastings it
// holds: an *instance* of it, with shapes of its variables and values of its attributes, is proved
// from the declarations when it is first wanted, for all sizes, or it is not used.
#ifndef ISOMER_VERIFIER_LEMMA_H_
#define ISOMER_VERIFIER_LEMMA_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verifier/elements/term.h"

namespace isomer {

// A pattern over terms: a variable (letter != 0) or an operator's name applied to patterns.
struct TermPattern {
  char letter = 0;
  OpKind kind = OpKind::kInput;
  std::vector<std::string> attributes;  // "a", "-1", "a^uv", "S", "f", "fg"
  int index = 0;
  std::vector<TermPattern> arguments;
};

// What a match binds. Tensor letters are bound to terms.
struct LemmaBinding {
  std::map<char, TermId> tensors;
  std::map<char, int64_t> axes;
  std::map<char, std::vector<Extent>> sizes;
  std::map<char, NumberExpr> factors;
};

struct Lemma {
  std::string id;
  std::string text;
  TermPattern left, right;
  // Sought in place of one side, for equations one side of which is a variable.
  std::optional<TermPattern> trigger;
};

// All lemmas, in a fixed order. Lemmas of elementwise operators are stated for each of them.
const std::vector<Lemma>& LemmaTable();

// Parses "left = right" or "trigger => left = right".
absl::StatusOr<Lemma> ParseLemma(absl::string_view id, absl::string_view text);

// Binds the attributes of `pattern` to those of `symbol`, of the same kind. False: they differ.
// Computed attributes ("a^uv") of unbound letters are appended to `deferred` with their values.
using Deferred = std::vector<std::pair<std::string, int64_t>>;
bool BindAttributes(const TermPattern& pattern, const Symbol& symbol, LemmaBinding* binding,
                    Deferred* deferred);
// Solves the deferred equations, in place. False: no solution, or a letter stays unbound.
bool SolveDeferred(const Deferred& deferred, LemmaBinding* binding);

// The term that `pattern` stands for. Errors: an unbound letter, or the term is ill-typed.
absl::StatusOr<TermId> Instantiate(const TermPattern& pattern, const LemmaBinding& binding,
                                   TermPool* pool);

enum class LemmaStatus { kProved, kNotProved };

// Remembers which instances are proved.
class LemmaBook {
 public:
  // Whether the instance of `lemma` whose tensors have the shapes of those bound in `pool` holds
  // for all sizes: by normal forms, and seen to hold at small sizes by the reference evaluator.
  // Aborts if the two disagree: one of them has a bug.
  LemmaStatus Status(const Lemma& lemma, const TermPool& pool, const LemmaBinding& binding);
  int num_instances() const { return static_cast<int>(known_.size()); }

 private:
  std::map<std::string, LemmaStatus> known_;
};

// True if both terms have the same elements at small sizes (the symbols' sizes drawn from `seed`),
// for random elements of a prime field. Errors: evaluation failed.
absl::StatusOr<bool> EqualAtSmallSizes(const TermPool& pool, TermId a, TermId b, uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMA_H_
