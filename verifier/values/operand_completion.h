// From representative calls to inputs of a pattern: the variables in attributes, and the types of
// inputs that no call so far has given.
#ifndef ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_
#define ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "rules/language/rule.h"

namespace isomer {

// Binds the variables in the attributes of `node` to those of `op`. False: a constant differs.
bool BindAttributes(const PatternNode& node, const Operator& op, int rank, Binding* binding);

// Whether attributes of `node` have variables that are not bound yet.
bool HasOpenAttributes(const PatternNode& node, const Binding& binding);

// Calls `visit` with every binding that gives the inputs of `source` that are not `known` the types
// that they have in representative calls of the nodes that take them, as large as what those take
// besides.
void ForEachCompletion(const Pattern& source, const std::vector<bool>& known,
                       const Binding& binding, absl::FunctionRef<void(const Binding&)> visit);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_
