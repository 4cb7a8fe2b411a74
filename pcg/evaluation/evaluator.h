// The reference evaluator: what a graph computes, straight from the declarations.
//
// Runs over any number type: double, float, and a prime field (prime_field.h) in which exp, tanh,
// ... are random functions and max is that of a random order, so that equality of results on random
// inputs is evidence of equality of functions. Gradients are reverse-mode differentiation of the
// same declarations.
#ifndef ISOMER_PCG_EVALUATION_EVALUATOR_H_
#define ISOMER_PCG_EVALUATION_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/graph.h"

namespace isomer {

// A piece of a logical tensor: the box [origin, origin + shape), row-major. Indices (int64 tensors)
// are held as numbers.
template <typename T>
struct Array {
  std::vector<int64_t> origin;
  std::vector<int64_t> shape;
  std::vector<T> data;

  Array() = default;
  // The whole of a tensor of this shape.
  explicit Array(std::vector<int64_t> whole_shape, T fill = T())
      : origin(whole_shape.size(), 0), shape(std::move(whole_shape)) {
    int64_t elements = 1;
    for (int64_t size : shape) elements *= size;
    data.assign(elements, fill);
  }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
};

// The part of an iteration space that one task covers: [begin, end) for every dim.
struct IterationBox {
  std::vector<int64_t> begin, end;
};
IterationBox FullBox(const Declaration& declaration);
// The box of a task with the given coordinates, dims cut into `degrees` equal pieces.
IterationBox TaskBox(const Declaration& declaration, absl::Span<const int64_t> degrees,
                     absl::Span<const int64_t> coordinates);

// Evaluates `declaration` over `box`. Operand pieces must cover what the box reads. The outputs are
// the pieces of the logical outputs that the box defines (partial sums, for sum dims).
// Errors: an index outside of the whole range of a look-up.
template <typename T>
absl::StatusOr<std::vector<Array<T>>> Evaluate(const Declaration& declaration,
                                               const IterationBox& box,
                                               absl::Span<const Array<T>* const> operands);

// The vector-Jacobian product of the same task: given the gradient of each output piece, adds each
// operand's share to `operand_gradients` (same pieces as the operands; null: not wanted).
template <typename T>
absl::Status EvaluateGradient(const Declaration& declaration, const IterationBox& box,
                              absl::Span<const Array<T>* const> operands,
                              absl::Span<const Array<T>* const> output_gradients,
                              absl::Span<Array<T>* const> operand_gradients);

// The value of a tensor: for each micro-batch and each partial, a logical tensor.
template <typename T>
struct Value {
  TensorType type;
  std::vector<Array<T>> parts;  // [micro_batch * partials + partial]
  const Array<T>& part(int64_t micro_batch, int64_t partial) const {
    return parts[micro_batch * type.partials + partial];
  }
};

// The meaning: the sum of partials, per micro-batch.
template <typename T>
std::vector<Array<T>> Meaning(const Value<T>& value);

// Values of all tensors: [node][output]. `leaves` gives a Value for every leaf, by node id, whose
// parts fit the leaf's type.
template <typename T>
using Values = std::vector<std::vector<Value<T>>>;
template <typename T>
absl::StatusOr<Values<T>> EvaluateGraph(const Graph& graph,
                                        const std::map<NodeId, Value<T>>& leaves);

// Gradients of sum over outputs o of <seeds[o], meaning of o> with respect to every leaf that is
// not an index tensor: per leaf, per micro-batch, a logical tensor. `seeds` has, per graph output
// and micro-batch, a logical tensor.
template <typename T>
absl::StatusOr<std::map<NodeId, std::vector<Array<T>>>> EvaluateGradients(
    const Graph& graph, const Values<T>& values, const std::vector<std::vector<Array<T>>>& seeds);

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_EVALUATOR_H_
