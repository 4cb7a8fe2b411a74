// The types of inputs of a pattern that no call so far has given, from representative calls.
#ifndef ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_
#define ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "rules/language/rule.h"

namespace isomer {

// Calls `visit` with every binding that gives the inputs of `source` that are not `known` the types
// that they have in representative calls of the nodes that take them, as large as what those take
// besides.
void ForEachCompletion(const Pattern& source, const std::vector<bool>& known,
                       const Binding& binding, absl::FunctionRef<void(const Binding&)> visit);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_OPERAND_COMPLETION_H_
