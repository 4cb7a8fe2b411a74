// Which operator is declared by which function, and has which traits.
#include "absl/strings/str_cat.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/ir/operator.h"
#include "pcg/operators/operators.h"

namespace isomer {

// Leaves and parallel operators.
absl::StatusOr<Declaration> DeclareNothing(const Operator& op, absl::Span<const Shape>) {
  return absl::InternalError(absl::StrCat("operator ", op.name(), " has no iteration space"));
}

constexpr OperatorTraits kInputTraits = {};
constexpr OperatorTraits kWeightTraits = {};
constexpr OperatorTraits kConstantTraits = {};
constexpr OperatorTraits kPartitionTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kCombineTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kReplicateTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kReduceTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kPipelineTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kBatchTraits = {.takes = OperandTypes::kAnything};
constexpr OperatorTraits kConcatPartialsTraits = {.takes = OperandTypes::kNumbers};

const OperatorTraits* const internal::kTraitsOfOperators[] = {
#define V(kind, name, min, max, attributes, declared_by) &k##kind##Traits,
    ISOMER_OPERATORS(V)
#undef V
};

absl::StatusOr<Declaration> Declare(const Operator& op, absl::Span<const Shape> shapes) {
  const int operands = static_cast<int>(shapes.size());
  if (operands < MinOperands(op.kind()) || operands > MaxOperands(op.kind())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "operator ", op.name(), " takes ", MinOperands(op.kind()), " operands, not ", operands));
  }
  if (!IsBuiltIn(op.kind())) return DeclaredOperatorOf(op.kind()).declare(op, shapes);
  switch (op.kind()) {
#define V(kind, name, min, max, attributes, declared_by) \
  case OpKind::k##kind:                                  \
    return Declare##declared_by(op, shapes);
    ISOMER_OPERATORS(V)
#undef V
  }
  return absl::InternalError("no operator");
}

}  // namespace isomer
