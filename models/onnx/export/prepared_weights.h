// Weights as the calls of data want them, so that other programs need not arrange them in each run.
#ifndef ISOMER_MODELS_ONNX_EXPORT_PREPARED_WEIGHTS_H_
#define ISOMER_MODELS_ONNX_EXPORT_PREPARED_WEIGHTS_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/stored_values.h"

namespace isomer {

// A prepared tensor is at most so many times as large as the leaves that it is made of: a filter of
// one place may become one of 7 x 7, but a mask that is made of a row stays an operator.
inline constexpr double kMostGrowth = 64;

struct PreparedWeights {
  // Results of cheap calls (CanRunOnHost) of weights and constants alone that other calls, or
  // outputs, use: joined, transposed, scaled, converted.
  std::map<TensorRef, StoredValues> values;
  // Per node: whether a graph with these in place of what makes them still has it.
  std::vector<bool> is_needed;
};
// `model` has the values of `graph`'s leaves; of leaves without, nothing is prepared. Errors: an
// index that is out of range, a file of weights that cannot be read.
absl::StatusOr<PreparedWeights> PrepareWeights(const Model& model, const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXPORT_PREPARED_WEIGHTS_H_
