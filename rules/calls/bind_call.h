// The variables of a rule, bound to what a call has.
#ifndef ISOMER_RULES_CALLS_BIND_CALL_H_
#define ISOMER_RULES_CALLS_BIND_CALL_H_

#include <string>
#include <variant>

#include "pcg/ir/operator_call.h"
#include "rules/language/rule.h"

namespace isomer {

// The attribute of this name, if the pattern has it in this form; or null.
template <typename T>
const T* AttributeOf(const PatternNode& node, const std::string& name) {
  for (const AttributePattern& attribute : node.attributes) {
    if (attribute.name == name) return std::get_if<T>(&attribute.value);
  }
  return nullptr;
}

// The dim of `type` along the node's axis; null if it has none.
Dim* DimAlongAxis(const PatternNode& node, const Binding& binding, TensorType* type);

// Binds the variables in the attributes of `node`, but for the sizes of a Split, to what `call` has
// there. False: a constant, or an axis that is bound, is another.
bool BindAttributes(const PatternNode& node, const OperatorCall& call, Binding* binding);

// Whether attributes of `node` have variables for numbers or whole values that are not bound yet.
bool HasOpenAttributes(const PatternNode& node, const Binding& binding);

// The condition kSplitsDim of a rule, which ties axes to a dim of a call; null if it has none.
const Condition* SplitOf(const Rule& rule);

// Binds the axes that a kSplitsDim names to those that `dim` leads. False: they differ.
bool BindAxes(const Condition& split, const SplittableDim& dim, Binding* binding);

}  // namespace isomer

#endif  // ISOMER_RULES_CALLS_BIND_CALL_H_
