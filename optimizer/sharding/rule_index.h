// Rules by their use in the search.
#ifndef ISOMER_OPTIMIZER_SHARDING_RULE_INDEX_H_
#define ISOMER_OPTIMIZER_SHARDING_RULE_INDEX_H_

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "pcg/ir/tensor_type.h"
#include "rules/language/rule.h"

namespace isomer {

// Every rule and every inverse of a reversible rule, once:
//   expansions  op(x..) -> parallel operators(op(parallel operators(x)..)): how op is split
//   chains      between chains of parallel operators on one tensor
//   copies      replicate(op(x..)) -> op(replicate(x)..): how copies of a result are made
//   algebra     without parallel operators: the space of the substitution search
class RuleIndex {
 public:
  // REQUIRES: rules.BuildIndex() was called; `rules` outlives this.
  explicit RuleIndex(const RuleSet& rules);

  const std::vector<const Rule*>& ExpansionsOf(OpKind kind) const;
  const std::vector<const Rule*>& CopiesOf(OpKind kind) const;
  // Whether one of those is proved for operands of these ranks: the shipped ones are of functions
  // of tensors, of rank 1 and more, and not of scalars.
  bool HasCopyOf(OpKind kind, absl::Span<const TensorType> operands) const;
  const std::vector<const Rule*>& chains() const { return chains_; }
  const std::vector<const Rule*>& algebra() const { return algebra_; }
  // Those of the first file of the rule set, of the first two, and so on; the last are all.
  std::vector<std::vector<const Rule*>> AlgebraByFiles() const;
  const RuleSet& rules() const { return rules_; }
  uint64_t digest() const { return digest_; }  // RuleSet::Digest, memoised: it walks

 private:
  void Add(const Rule& rule);

  const RuleSet& rules_;
  const uint64_t digest_;
  std::map<OpKind, std::vector<const Rule*>> expansions_, copies_;
  std::vector<const Rule*> chains_, algebra_;
};

// Whether either side of the rule has a parallel operator.
bool UsesParallelOperators(const Rule& rule);
// The only node of `pattern` that is no parallel operator, or -1.
int InnerNode(const Pattern& pattern);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_RULE_INDEX_H_
