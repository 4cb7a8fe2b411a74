// Calls that stand for all calls of an operator, where a lemma is checked rather than proved.
#ifndef ISOMER_VERIFIER_TERMS_REPRESENTATIVE_CALLS_H_
#define ISOMER_VERIFIER_TERMS_REPRESENTATIVE_CALLS_H_

#include <vector>

#include "pcg/ir/operator_call.h"

namespace isomer {

// Calls of every kind of operator whose declaration needs known sizes or attributes, one for each
// form that the declaration can take. Partitionable dims are even.
const std::vector<OperatorCall>& RepresentativeCalls(OpKind kind);

// These and the examples of a kind.
std::vector<OperatorCall> CallsToTry(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_REPRESENTATIVE_CALLS_H_
