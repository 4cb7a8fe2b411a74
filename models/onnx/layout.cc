// Operators that relabel or select elements.
#include <algorithm>
#include <utility>

#include "models/onnx/fold.h"
#include "models/onnx/operators.h"

namespace isomer {
namespace {

// Axes are the second operand from opset 13 on, and an attribute before.
std::vector<int64_t> Axes(NodeImporter& node) {
  return node.opset() >= 13 ? node.ConstantInts(1) : node.attributes.Ints("axes", {});
}

void DefineWithDims(NodeImporter& node, TensorRef x, absl::StatusOr<std::vector<int64_t>> dims) {
  if (node.Expect(dims.ok(), dims.status().message())) node.Define(0, node.Reshape(x, *dims));
}

// Elements [begin, begin + count) along `axis`. REQUIRES: they are inside, count >= 1.
TensorRef Range(NodeImporter& node, TensorRef x, int axis, int64_t begin, int64_t count) {
  if (!node.ok()) return {};
  const int64_t size = node.Sizes(x)[axis];
  if (count == size) return x;
  std::vector<int64_t> sizes;
  if (begin > 0) sizes.push_back(begin);
  const int part = static_cast<int>(sizes.size());
  sizes.push_back(count);
  if (begin + count < size) sizes.push_back(size - begin - count);
  TensorRef result = node.Call(
      {OpKind::kSplit, {{"axis", int64_t{axis}}, {"sizes", std::move(sizes)}}}, {x}, "/split");
  result.output = part;
  return result;
}

}  // namespace

void ImportReshape(NodeImporter& node) {
  const bool allow_zero = node.attributes.Int("allowzero", 0) == 1;
  const TensorRef x = node.Operand(0);
  const std::vector<int64_t> shape = node.ConstantInts(1);
  node.Define(0, node.ReshapeAsStated(x, shape, allow_zero));
}

// To two dims: the product of those before `axis`, and of the rest.
void ImportFlatten(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const std::vector<int64_t> sizes = node.Sizes(x);
  const int rank = static_cast<int>(sizes.size());
  int64_t axis = node.attributes.Int("axis", 1);
  if (axis < 0) axis += rank;
  if (!node.Expect(axis >= 0 && axis <= rank, "axis is no position among ", rank, " dims")) return;
  const std::vector<int64_t> before(sizes.begin(), sizes.begin() + axis);
  const std::vector<int64_t> after(sizes.begin() + axis, sizes.end());
  node.Define(0, node.Reshape(x, {NumElementsOf(before), NumElementsOf(after)}));
}

void ImportUnsqueeze(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  DefineWithDims(node, x, UnsqueezedDims(node.Sizes(x), Axes(node)));
}

void ImportSqueeze(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  DefineWithDims(node, x, SqueezedDims(node.Sizes(x), Axes(node)));
}

void ImportTranspose(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  std::vector<int64_t> reversed(node.Rank(x));
  for (size_t i = 0; i < reversed.size(); ++i) {
    reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  }
  const std::vector<int64_t> perm = node.attributes.Ints("perm", reversed);
  node.Define(0, node.Call({OpKind::kTranspose, {{"perm", perm}}}, {x}));
}

void ImportConcat(NodeImporter& node) {
  std::vector<TensorRef> parts;
  for (int i = 0; i < node.num_inputs(); ++i) parts.push_back(node.Operand(i));
  if (!node.Expect(node.attributes.Has("axis"), "it has no axis")) return;
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(parts[0]));
  if (parts.size() == 1) return node.Define(0, parts[0]);
  node.Define(0, node.Call({OpKind::kConcat, {{"axis", int64_t{axis}}}}, std::move(parts)));
}

// Sizes are the second operand from opset 13 on, and an attribute before; without them the parts
// are equal.
void ImportSplit(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  std::vector<int64_t> sizes =
      node.opset() >= 13 ? node.ConstantInts(1) : node.attributes.Ints("split", {});
  if (!node.ok()) return;
  const int64_t size = node.Sizes(x)[axis], parts = node.num_outputs();
  if (sizes.empty()) {
    if (!node.Expect(size % parts == 0, "dim ", axis, " of size ", size, " does not divide into ",
                     parts, " equal parts")) {
      return;
    }
    sizes.assign(parts, size / parts);
  }
  if (!node.Expect(static_cast<int64_t>(sizes.size()) == parts, "it has ", sizes.size(),
                   " sizes and ", parts, " outputs")) {
    return;
  }
  if (parts == 1 && sizes[0] == size) return node.Define(0, x);
  TensorRef part =
      node.Call({OpKind::kSplit, {{"axis", int64_t{axis}}, {"sizes", std::move(sizes)}}}, {x});
  for (part.output = 0; part.output < parts; ++part.output) node.Define(part.output, part);
}

// Slice(x, starts, ends, axes, steps) with steps of 1.
void ImportSlice(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const std::vector<int64_t> starts = node.ConstantInts(1), ends = node.ConstantInts(2);
  std::vector<int64_t> axes(starts.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  axes = node.ConstantInts(3, axes);
  const std::vector<int64_t> steps = node.ConstantInts(4, std::vector<int64_t>(starts.size(), 1));
  if (!node.Expect(ends.size() == starts.size() && axes.size() == starts.size() &&
                       steps.size() == starts.size(),
                   "starts, ends, axes and steps differ in length")) {
    return;
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = node.Axis(axes[i], node.Rank(x));
    if (!node.Expect(steps[i] == 1, "step ", steps[i], "; only 1 is read")) return;
    const int64_t size = node.Sizes(x)[axis];
    auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t begin = clamp(starts[i]), end = clamp(ends[i]);
    if (!node.Expect(begin < end, "nothing of dim ", axis, " remains")) return;
    x = Range(node, x, axis, begin, end - begin);
  }
  node.Define(0, x);
}

// By an index tensor along axis 0 of a table: Embedding. By constant, consecutive indices along
// any axis (a token's row; positions 0, 1, 2, ..): a part of a Split.
void ImportGather(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  if (!node.ok()) return;
  const OnnxTensor* const constant = node.Constant(1);
  std::vector<int64_t> sizes = node.Sizes(x);
  if (constant == nullptr) {
    const TensorRef indices = node.Operand(1);
    node.Expect(axis == 0 && sizes.size() == 2, "along axis ", axis, " of a tensor of rank ",
                sizes.size(), "; only rows of a table (axis 0, rank 2) are looked up");
    return node.Define(0, node.Call(OpKind::kEmbedding, {x, indices}));
  }
  std::vector<int64_t> indices = constant->ints;
  if (!node.Expect(!indices.empty(), "its indices are not integers")) return;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0) indices[i] += sizes[axis];
    const bool fits = indices[i] >= 0 && indices[i] < sizes[axis];
    if (!node.Expect(fits, "index ", constant->ints[i], " is outside of dim ", axis, " of size ",
                     sizes[axis]) ||
        !node.Expect(indices[i] == indices[0] + static_cast<int64_t>(i),
                     "constant indices are read only where each is one more than the last")) {
      return;
    }
  }
  const TensorRef part = Range(node, x, axis, indices[0], static_cast<int64_t>(indices.size()));
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, constant->dims.begin(), constant->dims.end());
  node.Define(0, node.Reshape(part, std::move(sizes)));
}

}  // namespace isomer
