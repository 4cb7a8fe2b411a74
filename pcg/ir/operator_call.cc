#include "pcg/ir/operator_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<OperatorCall> ParseCall(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::InvalidArgumentError("a call has an operator");
  OperatorCall call;
  ISOMER_ASSIGN_OR_RETURN(call.op, ParseOperator(words[0]));
  for (size_t i = 1; i < words.size(); ++i) {
    ISOMER_ASSIGN_OR_RETURN(TensorType type, ParseTensorType(words[i]));
    call.operands.push_back(std::move(type));
  }
  return call;
}

std::vector<Shape> ShapesOf(absl::Span<const TensorType> types) {
  std::vector<Shape> shapes;
  for (const TensorType& type : types) shapes.push_back(type.GlobalShape());
  return shapes;
}

std::vector<int> RanksOf(absl::Span<const TensorType> types) {
  std::vector<int> ranks;
  for (const TensorType& type : types) ranks.push_back(type.rank());
  return ranks;
}

absl::StatusOr<Declaration> DeclarationOf(const OperatorCall& call) {
  return Declare(call.op, ShapesOf(call.operands));
}

}  // namespace isomer
