// Small calls of every operator: what it is tested on, what the generator and the prover try it on,
// and what its page of the documentation shows. They stand in the operators' traits
// (pcg/ir/operator_traits.h), so that a new operator is everywhere at once.
#ifndef ISOMER_PCG_IR_EXAMPLES_H_
#define ISOMER_PCG_IR_EXAMPLES_H_

#include <string>
#include <vector>

#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct ExampleCall {
  std::string name;  // "Conv2dGroups": unique in the table, fit for the name of a test
  Operator op;
  std::vector<TensorType> operands;  // sequential; sizes that 2 divides where a dim can be split
};

// All examples, grouped by operator in the order of ISOMER_OPERATORS. Every declared operator has
// at least one.
const std::vector<ExampleCall>& Examples();
// Those of one operator.
std::vector<ExampleCall> ExamplesOf(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_EXAMPLES_H_
