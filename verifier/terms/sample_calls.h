// Calls that stand for all calls of an operator, where a lemma is checked rather than proved.
#ifndef ISOMER_VERIFIER_TERMS_SAMPLE_CALLS_H_
#define ISOMER_VERIFIER_TERMS_SAMPLE_CALLS_H_

#include <vector>

#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct RepresentativeCall {
  Operator op;
  std::vector<TensorType> operands;
};

// Calls of every kind of operator whose declaration needs known sizes or attributes, one for each
// form that the declaration can take. Partitionable dims are even.
std::vector<RepresentativeCall> RepresentativeCalls(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_SAMPLE_CALLS_H_
