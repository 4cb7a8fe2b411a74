// Types of calls, derived from declarations.
//
// The degrees of a call follow from its operand types alone:
//   - a partitioned operand dim gives its degree to the iteration dim that leads it (or is an
//     error, if none does, or two operands disagree);
//   - a spatial dim has the degree of the operand dims that its windows move over: those are held
//     in equal pieces like any other, so the degree divides their sizes and its own, and what a
//     task reads beside its own piece comes from the neighbours (OperandBox);
//   - an output dim has the degree of its lead; a sum dim of degree d gives partials d;
//   - an operand not indexed by a partitioned dim must hold that many copies;
//   - partials of operands in which the operator is jointly linear pass through; the other
//     operands must hold that many copies;
//   - copies beyond that are equal for all operands and are the copies of the outputs.
#ifndef ISOMER_PCG_IR_TYPE_INFERENCE_H_
#define ISOMER_PCG_IR_TYPE_INFERENCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/box.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// Output types of `op`, any operator but a leaf. Errors are one line with operator, dims, degrees.
absl::StatusOr<std::vector<TensorType>> InferTypes(const Operator& op,
                                                   absl::Span<const TensorType> operands);

// The data type of output `output`. Elements are moved whatever they are (layout, look-ups,
// parallel operators); arithmetic takes any numbers, of one type; the rest takes floats of one
// type. Indices are integers, comparisons give bool, Cast what it says.
absl::StatusOr<DataType> InferDataType(const Operator& op, absl::Span<const DataType> operands,
                                       int output = 0);

// How a call of a declared operator is spread over tasks. Tasks correspond one to one to the shards
// of (each) output: task = (output dim coordinates, copy, partial). The partial coordinate is
// mixed-radix: operand partial first (slowest), then the sum dims in declaration order.
struct Sharding {
  Declaration declaration;
  std::vector<int64_t> degrees;       // per iteration dim
  int64_t copies = 1;                 // redundant equal tasks
  int64_t operand_partials = 1;       // partials that pass through
  std::vector<bool> linear_operands;  // the operands that hold those partials
  std::vector<TensorType> outputs;

  // Coordinates of one task on every iteration dim, and its operand partial.
  struct Task {
    std::vector<int64_t> dims;
    int64_t operand_partial = 0;
  };
  // REQUIRES: out_coordinates has one entry per dim of output 0, partial < partials of output 0.
  Task TaskOfOutputShard(absl::Span<const int64_t> out_coordinates, int64_t partial) const;
  // Which shard of `operand` the task reads: a coordinate per dim, and the partial.
  std::vector<int64_t> OperandCoordinates(const Task& task, int operand) const;
  // The box of the logical operand that the task must have: the shard at OperandCoordinates, but
  // along dims with a halo (Declaration::HasHalo) of which the task reads elements outside of the
  // shard just what it reads.
  Box OperandBox(const Task& task, int operand) const;
  int64_t OperandPartial(const Task& task, int operand) const {
    return linear_operands[operand] ? task.operand_partial : 0;
  }
};

// REQUIRES: op is declared (not a leaf, not parallel).
absl::StatusOr<Sharding> InferSharding(const Operator& op, absl::Span<const TensorType> operands);

// What operand types a call needs to run with the given degrees of its iteration dims: the inverse
// of InferSharding, for searches and baselines. `logical` are operand types of which sizes and
// dtypes count. Operand i of `linear_operands` holds `operand_partials`.
// Errors: a dim that is not partitionable, or a degree that does not divide.
absl::StatusOr<std::vector<TensorType>> OperandTypesFor(const Operator& op,
                                                        absl::Span<const TensorType> logical,
                                                        absl::Span<const int64_t> degrees,
                                                        int64_t copies = 1);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_TYPE_INFERENCE_H_
