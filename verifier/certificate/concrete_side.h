// What a rule with attribute variables says at one place: calls of declared operators, each with
// its attributes and the shapes of its operands.
#ifndef ISOMER_VERIFIER_CERTIFICATE_CONCRETE_SIDE_H_
#define ISOMER_VERIFIER_CERTIFICATE_CONCRETE_SIDE_H_

#include <vector>

#include "pcg/operator.h"
#include "rules/rule.h"

namespace isomer {

// One side of a rule at one assignment.
struct ConcreteCall {
  Operator op;
  std::vector<PatternRef> inputs;
  std::vector<Shape> operands;
  friend bool operator==(const ConcreteCall&, const ConcreteCall&) = default;
};
struct ConcreteSide {
  std::vector<ConcreteCall> calls;
  std::vector<PatternRef> outputs;
  friend bool operator==(const ConcreteSide&, const ConcreteSide&) = default;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_CERTIFICATE_CONCRETE_SIDE_H_
