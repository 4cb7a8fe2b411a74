// Which terms need not be evaluated because an equation found before says what they are.
//
// A term that is not the first of its class is *reducible*: it equals one that was kept. So does
// what it becomes when other tensors stand for its inputs:
//
//     transpose(relu(x)) = relu(transpose(x)), and so transpose(relu(matmul(y, z))) is
//     relu(transpose(matmul(y, z)))
//
// An equation between the latter says nothing new, and evaluating its sides to see it costs as much
// as any other. What is left are equations that no smaller one explains at the root of a side.
//
// The other side has to be there as well: at most as large, so that it is enumerated if the term
// is. That holds if the term has the nodes of the pattern besides those of what stands for its
// inputs: where a node is both, the other side may be larger, and the term is evaluated.
#ifndef ISOMER_GENERATOR_ENUMERATION_REDUCIBLE_TERMS_H_
#define ISOMER_GENERATOR_ENUMERATION_REDUCIBLE_TERMS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "generator/enumeration/term_store.h"

namespace isomer {

class ReducibleTerms {
 public:
  explicit ReducibleTerms(const TermStore* store) : store_(store) {}

  // A term of `size` operators that equals tensors which were kept.
  void Add(const EnumeratedTerm& term, int size);
  // Whether `term` is one of those with other tensors in place of its inputs. Safe in several
  // threads while nothing is added.
  bool HasInstance(const EnumeratedTerm& term) const;

 private:
  struct Pattern {
    EnumeratedTerm term;
    int size;
  };
  // The call, and for each operand the call that makes it; null: an input of the pattern.
  using Key = absl::InlinedVector<const EnumeratedCall*, 4>;
  using Bound = absl::InlinedVector<int, 4>;  // by input: the tensor that stands for it, or -1

  const EnumeratedCall* MakerOf(int tensor) const;
  bool Matches(const Pattern& pattern, const EnumeratedTerm& term) const;
  bool MatchTensor(int pattern, int tensor, Bound* bound) const;

  const TermStore* const store_;
  absl::flat_hash_map<Key, std::vector<Pattern>> patterns_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_REDUCIBLE_TERMS_H_
