// Small calls of every operator: what it is tested on, what the generator and the prover try it on,
// and what its page of the documentation shows. They stand in the operators' traits
// (pcg/ir/operator_traits.h), so that a new operator is everywhere at once.
#ifndef ISOMER_PCG_IR_EXAMPLES_H_
#define ISOMER_PCG_IR_EXAMPLES_H_

#include <array>
#include <iterator>
#include <string>
#include <vector>

#include "pcg/ir/operator_call.h"

namespace isomer {

struct ExampleCall {
  std::string name;  // "Conv2dGroups": unique in the table, fit for the name of a test
  Operator op;
  std::vector<TensorType> operands;  // sequential; sizes that 2 divides where a dim can be split
  operator OperatorCall() const { return {op, operands}; }  // NOLINT(google-explicit-constructor)
};

// All examples, grouped by operator in the order of ISOMER_OPERATORS. Every declared operator has
// at least one.
const std::vector<ExampleCall>& Examples();
// Those of one operator.
std::vector<ExampleCall> ExamplesOf(OpKind kind);
// `calls` of one operator, followed by those of its examples that are not among them.
std::vector<OperatorCall> WithExamples(OpKind kind, std::vector<OperatorCall> calls = {});

// A list of calls for each operator, written as text.
class CallsByKind {
 public:
  // REQUIRES: ParseCall reads it.
  void Add(absl::string_view call);
  // Gives the operators that have no call so far their examples.
  void AddExamplesOfOthers();
  // In the order in which they were added.
  const std::vector<OperatorCall>& Of(OpKind kind) const {
    return calls_[static_cast<size_t>(kind)];
  }

 private:
  std::array<std::vector<OperatorCall>, kNumOpKinds> calls_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_IR_EXAMPLES_H_
