// Assignments at which a rule of any attributes is tried: made of representative calls.
#ifndef ISOMER_VERIFIER_VALUES_REPRESENTATIVE_BINDINGS_H_
#define ISOMER_VERIFIER_VALUES_REPRESENTATIVE_BINDINGS_H_

#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// Assignments that the rule admits and its source type-checks at, with types that are not parallel:
// one call of the source (or, if none can be, of the target) is a representative call, the inputs
// are what its operands are made of (a Concat of two, the whole that a Split takes apart, the
// operands of an elementwise operator), and attributes of other calls are those of their
// representative calls. Axes that the condition kSplitsDim ties to a dim take all their values.
std::vector<Binding> RepresentativeBindings(const Rule& rule);

// Assignments that differ from `binding` in one size, or in two in the same way, and that the rule
// admits and its source type-checks at.
std::vector<Binding> BindingsNear(const Rule& rule, const Binding& binding);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_REPRESENTATIVE_BINDINGS_H_
