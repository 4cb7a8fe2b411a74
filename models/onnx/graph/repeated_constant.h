// Constants that repeat along some of their dims, held once: the positions of 8,192 tokens, which
// are the same for each of 256 samples, are 8,192 numbers.
#ifndef ISOMER_MODELS_ONNX_GRAPH_REPEATED_CONSTANT_H_
#define ISOMER_MODELS_ONNX_GRAPH_REPEATED_CONSTANT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "models/onnx/tensor.h"

namespace isomer {

// More elements than this are not computed at import: positions of 4 million tokens.
inline constexpr int64_t kMostComputedElements = int64_t{1} << 22;

struct RepeatedConstant {
  std::vector<int64_t> dims;
  // One tensor of the same rank, of size 1 along dims that it repeats. Or several, of size 1 along
  // the last dim: one for each index of it. So a list of index tuples is held as its components.
  std::vector<OnnxTensor> parts;

  static RepeatedConstant Of(OnnxTensor tensor) { return {tensor.dims, {std::move(tensor)}}; }
  // REQUIRES: one part.
  bool Repeats(size_t dim) const { return parts[0].dims[dim] != dims[dim]; }
};

// What follows holds no more than kMostComputedElements, and is nothing where that does not
// suffice, or where what is asked for has no meaning (which is left to others to say).

// All elements.
std::optional<OnnxTensor> WrittenOut(const RepeatedConstant& x);
// Of one part.
std::optional<RepeatedConstant> AsOnePart(RepeatedConstant x);
// Of one part that does not repeat along `dim`.
std::optional<RepeatedConstant> WithoutRepeatsAlong(RepeatedConstant x, size_t dim);

// As ONNX's operators of these names have it. REQUIRES: axes are from the front.
std::optional<RepeatedConstant> ExpandRepeated(RepeatedConstant x,
                                               const std::vector<int64_t>& shape);
std::optional<RepeatedConstant> TransposeRepeated(RepeatedConstant x,
                                                  const std::vector<int64_t>& perm);
// Into dims of as many elements.
std::optional<RepeatedConstant> ReshapeRepeated(RepeatedConstant x, std::vector<int64_t> dims);
std::optional<RepeatedConstant> SliceRepeated(RepeatedConstant x, size_t axis, int64_t start,
                                              int64_t end, int64_t step);
std::optional<RepeatedConstant> ConcatRepeated(std::vector<RepeatedConstant> parts, size_t axis);
// Without batch dims.
std::optional<RepeatedConstant> GatherNDRepeated(const RepeatedConstant& table,
                                                 const RepeatedConstant& indices);

// The dims of what dims of operands are broadcast to.
std::optional<std::vector<int64_t>> BroadcastDims(const std::vector<std::vector<int64_t>>& dims);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_GRAPH_REPEATED_CONSTANT_H_
