// Operators that relabel elements, repeat them, or put others around them.
#include <algorithm>
#include <utility>

#include "models/onnx/graph/fold.h"
#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// Axes are the second operand from opset 13 on, and an attribute before.
std::vector<int64_t> Axes(NodeImporter& node) {
  return node.opset() >= 13 ? node.ConstantInts(1) : node.attributes.Ints("axes", {});
}

void DefineWithDims(NodeImporter& node, TensorRef x, absl::StatusOr<std::vector<int64_t>> dims) {
  if (node.Expect(dims.ok(), dims.status().message())) node.Define(0, node.Reshape(x, *dims));
}

// Fails unless x is [n, c, y, x] and its dims divide by `blocks` of these dims.
bool ExpectBlocks(NodeImporter& node, TensorRef x, const Sizes& blocks) {
  if (!node.ok()) return false;
  const Sizes sizes = node.Sizes(x);
  if (!node.Expect(sizes.size() == 4, "input 0 has rank ", sizes.size(), ", not 4")) return false;
  for (int i = 0; i < 4; ++i) {
    if (!node.Expect(blocks[i] >= 1 && sizes[i] % blocks[i] == 0, "dim ", i, " of size ", sizes[i],
                     " does not divide by ", blocks[i])) {
      return false;
    }
  }
  return true;
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
  std::vector<int64_t> perm = node.attributes.Ints("perm", reversed);
  // PyTorch's older exporter leaves dims that a module counts from the end.
  for (int64_t& dim : perm) {
    if (dim < 0) dim += static_cast<int64_t>(reversed.size());
  }
  node.Define(0, node.Call({OpKind::kTranspose, {{"perm", perm}}}, {x}));
}

void ImportConcat(NodeImporter& node) {
  std::vector<TensorRef> parts;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const OnnxTensor* const constant = node.Constant(i);
    const bool is_empty = constant != nullptr && constant->size() == 0;
    if (!is_empty) parts.push_back(node.Operand(i));
  }
  if (!node.Expect(node.attributes.Has("axis"), "it has no axis")) return;
  if (!node.Expect(!parts.empty(), "all of its parts are empty; ", kNoEmptyTensors)) return;
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(parts[0]));
  DefineAs(node, 0, Concatenated(node, std::move(parts), axis));
}

// The shape broadcasts with that of x: either may have dims of size 1 that the other has larger.
void ImportExpand(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  Sizes shape = node.ConstantInts(1);
  if (!node.ok()) return;
  const Sizes sizes = node.Sizes(x);
  if (shape.size() < sizes.size()) shape.insert(shape.begin(), sizes.size() - shape.size(), 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& wanted = shape[shape.size() - sizes.size() + i];
    if (wanted == 1) wanted = sizes[i];
  }
  DefineAs(node, 0, Expanded(node, x, std::move(shape)));
}

// Each dim becomes [repeats, size] for a moment.
void ImportTile(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Sizes repeats = node.ConstantInts(1);
  if (!node.ok()) return;
  const Sizes sizes = node.Sizes(x);
  if (!node.Expect(repeats.size() == sizes.size(), repeats.size(), " repeats for ", sizes.size(),
                   " dims")) {
    return;
  }
  Sizes apart, repeated, merged;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t whole = 0;
    if (!node.Expect(repeats[i] >= 1 && !__builtin_mul_overflow(repeats[i], sizes[i], &whole),
                     "dim ", i, " of size ", sizes[i], " is repeated ", repeats[i], " times")) {
      return;
    }
    if (repeats[i] > 1) apart.push_back(1), repeated.push_back(repeats[i]);
    apart.push_back(sizes[i]), repeated.push_back(sizes[i]);
    merged.push_back(whole);
  }
  const TensorRef wide = Expanded(node, Reshaped(node, x, std::move(apart)), std::move(repeated));
  DefineAs(node, 0, Reshaped(node, wide, std::move(merged)));
}

// Operands from opset 11 on, attributes before. Pads below 0 cut off.
void ImportPad(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const std::string mode = node.attributes.String("mode", "constant");
  Sizes pads = node.opset() >= 11 ? node.ConstantInts(1) : node.attributes.Ints("pads", {});
  double value = node.opset() >= 11 ? 0 : node.attributes.Float("value", 0);
  if (node.HasInput(2)) {
    const OnnxTensor* const constant = node.Constant(2);
    if (constant == nullptr || constant->size() != 1) {
      return node.Refuse("the value to pad with is no constant");
    }
    value = constant->Number(0);
  }
  const int rank = node.Rank(x);
  const Sizes axes = node.ConstantInts(3, AllAxes(rank));
  static constexpr const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
  const int64_t mode_number = std::find(kModes, kModes + 4, mode) - kModes;
  if (!node.Expect(mode_number < 4, "mode ", QuotedName(mode), " is not known") ||
      !node.Expect(pads.size() == 2 * axes.size(), pads.size(), " pads for ", axes.size(),
                   " dims")) {
    return;
  }
  Sizes padding(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = node.Axis(axes[i], rank);
    if (!node.ok()) return;
    const int64_t before = pads[i], after = pads[axes.size() + i];
    constexpr int64_t kMost = int64_t{1} << 48;
    if (!node.Expect(std::min(before, after) >= -kMost && std::max(before, after) <= kMost, "pads ",
                     before, " and ", after, " of dim ", axis)) {
      return;
    }
    const int64_t cut_before = std::max<int64_t>(0, -before),
                  cut_after = std::max<int64_t>(0, -after);
    const int64_t left = node.Sizes(x)[axis] - cut_before - cut_after;
    if (!node.Expect(left >= 1, "nothing of dim ", axis, " remains")) return;
    x = Sliced(node, x, axis, cut_before, left);
    padding[axis] = std::max<int64_t>(0, before);
    padding[rank + axis] = std::max<int64_t>(0, after);
  }
  DefineAs(node, 0, Padded(node, x, std::move(padding), value, mode_number));
}

// Channels of blocks become images: DCR takes the block's dims before the channels, CRD after.
void ImportDepthToSpace(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int64_t b = node.attributes.Int("blocksize", 0);
  const std::string mode = node.attributes.String("mode", "DCR");
  if (!node.Expect(mode == "DCR" || mode == "CRD", "mode ", QuotedName(mode), " is not known") ||
      !node.Expect(b >= 1 && b < 4096, "blocksize ", b) ||
      !ExpectBlocks(node, x, {1, b * b, 1, 1})) {
    return;
  }
  const Sizes s = node.Sizes(x);
  const int64_t depth = s[1] / (b * b);
  const bool is_dcr = mode == "DCR";
  const TensorRef apart = Reshaped(
      node, x,
      is_dcr ? Sizes{s[0], b, b, depth, s[2], s[3]} : Sizes{s[0], depth, b, b, s[2], s[3]});
  const TensorRef moved =
      Transposed(node, apart, is_dcr ? Sizes{0, 3, 4, 1, 5, 2} : Sizes{0, 1, 4, 2, 5, 3});
  DefineAs(node, 0, Reshaped(node, moved, {s[0], depth, s[2] * b, s[3] * b}));
}

void ImportSpaceToDepth(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int64_t b = node.attributes.Int("blocksize", 0);
  if (!node.Expect(b >= 1 && b < 4096, "blocksize ", b) || !ExpectBlocks(node, x, {1, 1, b, b}))
    return;
  const Sizes s = node.Sizes(x);
  const TensorRef apart = Reshaped(node, x, {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const TensorRef moved = Transposed(node, apart, {0, 3, 5, 1, 2, 4});
  DefineAs(node, 0, Reshaped(node, moved, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

void ImportTrilu(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Sizes k = node.ConstantInts(1, {0});
  const int64_t upper = node.attributes.Int("upper", 1);
  if (!node.Expect(k.size() == 1, "k is not one number")) return;
  node.Define(0, node.Call({OpKind::kTrilu, {{"upper", upper}, {"k", k[0]}}}, {x}));
}

// 1 on diagonal k of a matrix of the dims of the operand.
void ImportEyeLike(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int64_t k = node.attributes.Int("k", 0), to = node.attributes.Int("dtype", 0);
  const absl::StatusOr<DataType> type = OnnxDataType(static_cast<int>(to));
  if (to != 0 && !type.ok()) return node.Refuse(type.status().message());
  if (!node.ok() || !node.Expect(node.Rank(x) == 2, "input 0 has not rank 2")) return;
  const Sizes sizes = node.Sizes(x);
  if (!FitsLiteral(node, sizes)) return;
  std::vector<float> eye(NumElementsOf(sizes), 0);
  for (int64_t row = 0; row < sizes[0]; ++row) {
    if (k >= -row && k < sizes[1] - row) eye[row * sizes[1] + row + k] = 1;
  }
  const DataType dtype = to == 0 ? node.Type(x) : *type;
  DefineAs(node, 0, Cast(node, FloatLiteral(node, sizes, std::move(eye)), dtype));
}

// Cuts or pads (with 0) each axis to the wanted size; of an odd difference the end takes more.
void ImportCenterCropPad(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const int rank = node.Rank(x);
  const Sizes shape = node.ConstantInts(1);
  const Sizes axes = node.attributes.Ints("axes", AllAxes(rank));
  if (!node.Expect(shape.size() == axes.size(), shape.size(), " sizes for ", axes.size(),
                   " axes")) {
    return;
  }
  Sizes padding(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = node.Axis(axes[i], rank);
    if (!node.ok() || !node.Expect(shape[i] >= 1, "size ", shape[i])) return;
    const int64_t more = shape[i] - node.Sizes(x)[axis];
    if (more < 0) {
      x = Sliced(node, x, axis, -more / 2, shape[i]);
    } else {
      padding[axis] = more / 2;
      padding[rank + axis] = more - more / 2;
    }
  }
  DefineAs(node, 0, Padded(node, x, std::move(padding), 0));
}

}  // namespace isomer
