// Conditions on a binding, where the calls of the source are at hand already (the matcher's case).
#ifndef ISOMER_RULES_MATCHING_CONDITIONS_H_
#define ISOMER_RULES_MATCHING_CONDITIONS_H_

#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "rules/language/rule.h"

namespace isomer {

// The operator of a source node and its operand types, in the order of the pattern.
using SourceCall = absl::FunctionRef<std::pair<Operator, std::vector<TensorType>>(int node)>;

bool ConditionHolds(const Condition& condition, const Binding& binding, const SourceCall& call);
bool Admits(const Rule& rule, const Binding& binding, const SourceCall& call);

// The rule without its conditions of that kind.
Rule WithoutConditions(Rule rule, Condition::Kind kind);

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_CONDITIONS_H_
