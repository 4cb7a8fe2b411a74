// One match in the making: what is bound so far. Internal to rules/.
#ifndef ISOMER_RULES_MATCHING_MATCH_H_
#define ISOMER_RULES_MATCHING_MATCH_H_

#include <optional>
#include <vector>

#include "rules/matching/rewrite.h"

namespace isomer {

struct PartialMatch {
  std::vector<NodeId> nodes;                     // per source node; -1: not yet
  std::vector<bool> swapped;                     // per source node: operands taken the other way
  std::vector<std::optional<TensorRef>> inputs;  // per rule input
  Binding binding;                               // variables so far; inputs are filled in last
};

// Binds the attributes of source node `node` to those of a graph node, or returns false. Sizes and
// products that cannot be solved yet are left to AttributesAgree.
bool UnifyAttributes(const PatternNode& node, const Operator& op, int operand_rank,
                     Binding* binding);

// True if the pattern node under the binding is the operator; axes are compared from the end.
bool AttributesAgree(const PatternNode& node, const Operator& op, int operand_rank,
                     const Binding& binding);

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_MATCH_H_
