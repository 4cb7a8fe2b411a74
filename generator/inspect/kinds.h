// What a rule is about, by its operators alone.
#ifndef ISOMER_GENERATOR_INSPECT_KINDS_H_
#define ISOMER_GENERATOR_INSPECT_KINDS_H_

#include "rules/language/rule.h"

namespace isomer {

enum class RuleKind {
  kAlgebra,  // no parallel operators
  kMixing,   // parallel operators and others
  kMoving,   // parallel operators alone: how tensors are moved
};
RuleKind KindOf(const Rule& rule);
const char* RuleKindName(RuleKind kind);

// True if the rule has parallel operators and changes more than the placement: its sides differ
// also when parallel operators, which are identities on values, are taken out (partials side by
// side are their sum). Operands of Add and Mul are compared in any order.
bool IsJoint(const Rule& rule);

// The operators of both sides.
OpKindSet OperatorsOf(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_KINDS_H_
