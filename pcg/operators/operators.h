// The declarations and traits of all operators, in the file of their family: DeclareMatMul,
// kMatMulTraits. See declaration.h for how declarations read. Each returns an error that names
// operand, dim and sizes if the operand shapes do not fit.
#ifndef ISOMER_PCG_OPERATORS_OPERATORS_H_
#define ISOMER_PCG_OPERATORS_OPERATORS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {

#define V(kind, name, min, max, attributes, declared_by)               \
  extern const OperatorTraits k##kind##Traits;                         \
  absl::StatusOr<Declaration> Declare##declared_by(const Operator& op, \
                                                   absl::Span<const Shape> shapes);
ISOMER_OPERATORS(V)
#undef V

// What an elementwise operator of one operand does to x, for operators with such a part.
Expr UnaryBody(const Operator& op, const Expr& x);

// "matmul: dim k is 4 in operand 0 and 8 in operand 1"
absl::Status Mismatch(const Operator& op, absl::string_view dim, int operand_a, const Extent& a,
                      int operand_b, const Extent& b);
// Attaches to `mismatch` the two sizes that should have been equal, as payload kSizeMismatch in the
// form "s0 + 2|s1": where they are symbols, the prover goes on with the case in which they are.
absl::Status WithSizes(absl::Status mismatch, const Extent& a, const Extent& b);
inline constexpr char kSizeMismatch[] = "isomer/size_mismatch";
// An error unless operand `operand` has rank `rank`.
absl::Status ExpectRank(const Operator& op, absl::Span<const Shape> shapes, int operand, int rank);
// An error unless all sizes are numbers.
absl::Status ExpectConcreteSizes(const Operator& op, absl::Span<const Shape> shapes);

}  // namespace isomer

#endif  // ISOMER_PCG_OPERATORS_OPERATORS_H_
