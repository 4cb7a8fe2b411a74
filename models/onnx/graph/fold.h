// Shape arithmetic: what exporters compute with nodes although it is known beforehand.
#ifndef ISOMER_MODELS_ONNX_GRAPH_FOLD_H_
#define ISOMER_MODELS_ONNX_GRAPH_FOLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/tensor.h"

namespace isomer {

// True for operators that FoldNode knows.
bool IsFoldable(absl::string_view op);

// The output of a node all of whose operands are constants (null where left out): integers, or
// literals. Nothing where the node is not one to compute here; an error where it has no value.
// Operands that are parameters of the network are not folded: they are to be trained.
// `budget` is how many elements may yet be read and written; what is beyond it is not computed
// either.
absl::StatusOr<std::optional<OnnxTensor>> FoldNode(const OnnxNode& node,
                                                   absl::Span<const OnnxTensor* const> operands,
                                                   int64_t* budget);

// Dims with 1 inserted at `axes` of the result, and dims without the dims `axes` (of size 1; all
// of that size where axes is empty).
absl::StatusOr<std::vector<int64_t>> UnsqueezedDims(std::vector<int64_t> dims,
                                                    std::vector<int64_t> axes);
absl::StatusOr<std::vector<int64_t>> SqueezedDims(const std::vector<int64_t>& dims,
                                                  const std::vector<int64_t>& axes);
// The shape that a Reshape with operand `shape` gives a tensor of `dims`: 0 keeps the dim (unless
// `allow_zero`), one -1 is what remains.
absl::StatusOr<std::vector<int64_t>> ReshapedDims(const std::vector<int64_t>& dims,
                                                  std::vector<int64_t> shape, bool allow_zero);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_FOLD_H_
