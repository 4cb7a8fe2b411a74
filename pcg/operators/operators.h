// The declarations of all operators, by family; see declaration.h for how they read.
// Each returns an error that names operand, dim and sizes if the operand shapes do not fit.
#ifndef ISOMER_PCG_OPERATORS_OPERATORS_H_
#define ISOMER_PCG_OPERATORS_OPERATORS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"

namespace isomer {

absl::StatusOr<Declaration> DeclareMatMul(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareLinear(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareConvolution(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareConvTranspose(const Operator& op,
                                                 absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareBinary(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareUnary(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareWhere(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareDropout(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareSoftmax(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareLayerNorm(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareRmsNorm(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareGroupNorm(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareBatchNorm(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareBatchNormTraining(const Operator& op,
                                                     absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclarePool(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareAdaptivePool(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareReduction(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareArgMax(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareTopK(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareCumSum(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareTranspose(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareReshape(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareConcat(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareSplit(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareSlice(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclarePad(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareExpand(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareTrilu(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareEmbedding(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareGatherMatMul(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareEmbeddingBag(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareGather(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareGatherElements(const Operator& op,
                                                  absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareScatterElements(const Operator& op,
                                                   absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareOneHot(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareAttention(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareRotary(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareLstmCell(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareGruCell(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareTop2Gating(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareCrossEntropy(const Operator& op, absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareMeanSquaredError(const Operator& op,
                                                    absl::Span<const Shape> shapes);
absl::StatusOr<Declaration> DeclareBinaryCrossEntropy(const Operator& op,
                                                      absl::Span<const Shape> shapes);

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
