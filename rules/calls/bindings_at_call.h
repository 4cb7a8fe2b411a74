// What the inputs of a rule can be where a node of its source is a given call.
#ifndef ISOMER_RULES_CALLS_BINDINGS_AT_CALL_H_
#define ISOMER_RULES_CALLS_BINDINGS_AT_CALL_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "pcg/ir/operator_call.h"
#include "rules/language/rule.h"

namespace isomer {

// How large the parts of a Concat or a Split are where only one of them, or their sum, is known.
enum class PartSizes {
  kEqual,   // all parts can be partitioned if one can
  kUnlike,  // a rule that takes one part for another shows
};

// Calls visit(binding, known) with `start` and, bound besides,
//   - the variables in the attributes of source node `subject`, to those of `call`;
//   - axes: those that kSplitsDim ties to a dim of such a call, to those of each of its dims, and
//     all others to every value that fits;
//   - the types of the inputs (`known`) that the operands of the node, and of others of its kind,
//     are made of: the parts that a Concat joins, the whole that a Split takes apart, what is
//     transposed; any other operator's operands are taken to be of the type of its result.
// Whether the source type-checks and the rule admits the binding is for `visit` to see.
void ForEachBindingAt(
    const Rule& rule, int subject, const OperatorCall& call, const Binding& start, PartSizes parts,
    absl::FunctionRef<void(const Binding& binding, const std::vector<bool>& known)> visit);

}  // namespace isomer

#endif  // ISOMER_RULES_CALLS_BINDINGS_AT_CALL_H_
