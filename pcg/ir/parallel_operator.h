// The parallel operators: identities on values that change how a value is held.
//
//   operator         effect on the type                           dual (its gradient)
//   Partition(i,d)   degree_i *= d                                Combine(i,d)
//   Combine(i,d)     degree_i /= d                                Partition(i,d)
//   Replicate(d)     copies *= d                                  Reduce(d)
//   Reduce(d)        partials /= d, summing                       Replicate(d)
//   Pipeline(i,n)    size_i /= n, a sequence of n micro-batches   Batch(i,n)
//   Batch(i,n)       size_i *= n                                  Pipeline(i,n)
//   ConcatPartials   partials of the operands, side by side       each operand gets a copy
//
// Batch undoes the one Pipeline a tensor went through; nesting of Pipelines is a type error.
#ifndef ISOMER_PCG_IR_PARALLEL_OPERATOR_H_
#define ISOMER_PCG_IR_PARALLEL_OPERATOR_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// REQUIRES: IsParallel(op.kind()) and its attributes are there.
absl::StatusOr<TensorType> InferParallelType(const Operator& op,
                                             absl::Span<const TensorType> operands);

// The operator whose forward is the gradient of `op`. REQUIRES: IsParallel, not ConcatPartials.
Operator DualOf(const Operator& op);

Operator Partition(int64_t axis, int64_t degree);
Operator Combine(int64_t axis, int64_t degree);
Operator Replicate(int64_t degree);
Operator Reduce(int64_t degree);
Operator Pipeline(int64_t axis, int64_t degree);
Operator Batch(int64_t axis, int64_t degree);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_PARALLEL_OPERATOR_H_
