// A call of an operator, by itself: not of a graph.
#ifndef ISOMER_PCG_IR_OPERATOR_CALL_H_
#define ISOMER_PCG_IR_OPERATOR_CALL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

struct OperatorCall {
  Operator op;
  std::vector<TensorType> operands;
  friend bool operator==(const OperatorCall&, const OperatorCall&) = default;
};

// Parses "matmul f32[4,6] f32[6,2]": the operator as ParseOperator reads it, then its operands.
absl::StatusOr<OperatorCall> ParseCall(absl::string_view text);

std::vector<Shape> ShapesOf(absl::Span<const TensorType> types);
std::vector<int> RanksOf(absl::Span<const TensorType> types);

// What the call means. Errors: those of Declare.
absl::StatusOr<Declaration> DeclarationOf(const OperatorCall& call);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_OPERATOR_CALL_H_
