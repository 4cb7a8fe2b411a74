// Convolutions and matrix products.
#include <algorithm>
#include <limits>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"
#include "models/onnx/import/window.h"
#include "models/support/einsum.h"

namespace isomer {
namespace {

// `product` plus a bias per channel, dim 1.
void DefineWithBias(NodeImporter& node, TensorRef product, int64_t channels) {
  const TensorRef bias = node.Operand(2);
  if (!node.Expect(!node.ok() || node.Sizes(bias) == std::vector<int64_t>{channels},
                   "the bias has not one element for each of ", channels, " output channels")) {
    return;
  }
  std::vector<int64_t> shape(node.Rank(product), 1);
  shape[1] = channels;
  const TensorRef per_channel = node.Reshape(bias, std::move(shape), "/bias");
  node.Define(0, node.Call(OpKind::kAdd, {product, per_channel}));
}

// The kernel that the weight [.., .., kernel..] has.
std::vector<int64_t> KernelOf(NodeImporter& node, TensorRef w, size_t rank) {
  if (!node.ok()) return {};
  const std::vector<int64_t> weight = node.Sizes(w);
  if (!node.Expect(weight.size() == rank + 2, "input 1 has rank ", weight.size(), ", not ",
                   rank + 2)) {
    return {};
  }
  const std::vector<int64_t> kernel(weight.begin() + 2, weight.end());
  node.Expect(node.attributes.Ints("kernel_shape", kernel) == kernel,
              "kernel_shape differs from the weight's dims from 2 on");
  return kernel;
}

}  // namespace

void ImportConv(NodeImporter& node) {
  const TensorRef x = node.Operand(0), w = node.Operand(1);
  const std::vector<int64_t> image = ImageSizes(node, x);
  const Window window = ReadWindow(node, KernelOf(node, w, image.size()), image);
  if (!node.ok()) return;
  static constexpr OpKind kKinds[] = {OpKind::kConv1d, OpKind::kConv2d, OpKind::kConv3d};
  const Operator conv = {kKinds[image.size() - 1],
                         {{"stride", window.stride},
                          {"padding", window.padding},
                          {"dilation", window.dilation},
                          {"groups", node.attributes.Int("group", 1)}}};
  if (!node.HasInput(2)) return node.Define(0, node.Call(conv, {x, w}));
  DefineWithBias(node, node.Call(conv, {x, w}, "/product"), node.Sizes(w)[0]);
}

// The output has stride (size - 1) + output_padding + span - pads elements. Where output_shape
// asks for another size, the padding makes up for it; padding below 0 is output_padding at the end.
void ImportConvTranspose(NodeImporter& node) {
  const TensorRef x = node.Operand(0), w = node.Operand(1);
  const std::vector<int64_t> image = ImageSizes(node, x);
  const int rank = static_cast<int>(image.size());
  Window window = ReadWindowAttributes(node, KernelOf(node, w, image.size()), rank);
  std::vector<int64_t> extra = node.attributes.Ints("output_padding", Sizes(rank, 0));
  std::vector<int64_t> wanted = node.attributes.Ints("output_shape", {});
  const std::string auto_pad = node.attributes.String("auto_pad", "NOTSET");
  const int64_t groups = node.attributes.Int("group", 1);
  if (!node.ok()) return;
  if (wanted.size() == image.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!node.Expect(extra.size() == image.size(), "output_padding needs ", rank, " numbers") ||
      !node.Expect(wanted.empty() || wanted.size() == image.size(), "output_shape needs ", rank,
                   " numbers") ||
      !node.Expect(is_same || auto_pad == "NOTSET" || auto_pad == "VALID", "auto_pad ",
                   QuotedName(auto_pad), " is not known")) {
    return;
  }
  if (auto_pad == "VALID") window.padding.assign(2 * rank, 0);
  std::vector<int64_t> missing(rank, 0);  // zeros after the end that no position reaches
  for (int i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 30;  // no product of two overflows
    if (!node.Expect(image[i] <= kMost && extra[i] >= 0 && extra[i] <= kMost &&
                         (wanted.empty() || (wanted[i] >= 1 && wanted[i] <= kMost)),
                     "dim ", i + 2, ": an output of impossible size")) {
      return;
    }
    const int64_t whole = window.stride[i] * (image[i] - 1) + extra[i] + window.Span(i);
    if (wanted.empty() && !is_same) continue;
    const int64_t size = wanted.empty() ? image[i] * window.stride[i] : wanted[i];
    const int64_t total = std::max<int64_t>(0, whole - size);
    missing[i] = std::max<int64_t>(0, size - whole);
    window.padding[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.padding[rank + i] = total - window.padding[i];
  }
  for (int i = 0; i < rank; ++i) extra[i] += missing[i];
  const Operator conv = {OpKind::kConvTranspose,
                         {{"stride", window.stride},
                          {"padding", window.padding},
                          {"dilation", window.dilation},
                          {"output_padding", extra},
                          {"groups", groups}}};
  if (!node.HasInput(2)) return node.Define(0, node.Call(conv, {x, w}));
  const TensorRef product = node.Call(conv, {x, w}, "/product");
  if (node.ok()) DefineWithBias(node, product, node.Sizes(product)[1]);
}

// Col2Im(x [n, c * kernel.., positions..], image shape, kernel shape): each element is added to
// where its window had it. A transposed convolution of each channel, whose filters have a single 1.
void ImportCol2Im(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Sizes image = node.ConstantInts(1), kernel = node.ConstantInts(2);
  const int rank = static_cast<int>(image.size());
  if (!node.Expect(rank >= 1 && rank <= 3 && kernel.size() == image.size(), "images of ", rank,
                   " dims and kernels of ", kernel.size())) {
    return;
  }
  const Window window = ReadWindowAttributes(node, kernel, rank);
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  const auto fits = [](int64_t size) { return size >= 1 && size <= kLargest; };
  if (!node.Expect(std::all_of(image.begin(), image.end(), fits) &&
                       std::all_of(kernel.begin(), kernel.end(), fits),
                   "a size of the image or of the kernel is not between 1 and ", kLargest) ||
      !FitsLiteral(node, kernel)) {
    return;
  }
  const Sizes sizes = node.Sizes(x);
  Sizes windows, extra;
  for (int i = 0; i < rank; ++i) {
    const int64_t along = window.Positions(i, image[i]);
    if (!node.Expect(along >= 1, "no window fits dim ", i, " of the image")) {
      return;
    }
    const int64_t padded = image[i] + window.padding[i] + window.padding[rank + i];
    extra.push_back(padded - window.Span(i) - window.stride[i] * (along - 1));
    windows.push_back(along);
  }
  const int64_t taps = NumElementsOf(kernel), positions = NumElementsOf(windows);
  if (!node.Expect(sizes.size() == 3 && sizes[1] % taps == 0 && sizes[2] == positions,
                   "input 0 is not [n, c * ", taps, ", ", positions, "]") ||
      !FitsLiteral(node, {taps, taps})) {
    return;
  }
  const int64_t channels = sizes[1] / taps;
  Sizes apart = {sizes[0] * channels, taps}, filters = {taps, 1};
  apart.insert(apart.end(), windows.begin(), windows.end());
  filters.insert(filters.end(), kernel.begin(), kernel.end());
  std::vector<float> ones(taps * taps, 0);
  for (int64_t tap = 0; tap < taps; ++tap) ones[tap * taps + tap] = 1;
  const TensorRef single = FloatLiteral(node, filters, std::move(ones));
  if (!node.ok()) return;
  const Operator conv = {OpKind::kConvTranspose,
                         {{"stride", window.stride},
                          {"padding", window.padding},
                          {"dilation", window.dilation},
                          {"output_padding", extra},
                          {"groups", int64_t{1}}}};
  const TensorRef y = node.Call(
      conv, {Reshaped(node, x, std::move(apart)), Cast(node, single, node.Type(x))}, "/windows");
  Sizes result = image;
  result.insert(result.begin(), {sizes[0], channels});
  DefineAs(node, 0, Reshaped(node, y, std::move(result)));
}

// An operand of rank 1 is a row on the left, a column on the right.
void ImportMatMul(NodeImporter& node) {
  TensorRef a = node.Operand(0), b = node.Operand(1);
  if (!node.ok()) return;
  const bool is_row = node.Rank(a) == 1, is_column = node.Rank(b) == 1;
  if (!is_row && !is_column) return node.Define(0, node.Call(OpKind::kMatMul, {a, b}));
  if (is_row) a = Reshaped(node, a, {1, node.Sizes(a)[0]});
  if (is_column) b = Reshaped(node, b, {node.Sizes(b)[0], 1});
  const TensorRef product = Product(node, a, b);
  Sizes sizes = node.Sizes(product);
  if (!node.ok()) return;
  if (is_column) sizes.pop_back();
  if (is_row) sizes.erase(sizes.end() - (is_column ? 1 : 2));
  DefineAs(node, 0, Reshaped(node, product, std::move(sizes)));
}

// alpha * A * B + beta * C, with A or B transposed first.
void ImportGemm(NodeImporter& node) {
  TensorRef a = node.Operand(0), b = node.Operand(1);
  for (int i : {0, 1}) {
    const int rank = node.Rank(i == 0 ? a : b);
    if (!node.Expect(!node.ok() || rank == 2, "input ", i, " has rank ", rank, ", not 2")) return;
  }
  const Operator transpose = {OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}};
  if (node.attributes.Int("transA", 0) != 0) a = node.Call(transpose, {a}, "/a");
  if (node.attributes.Int("transB", 0) != 0) b = node.Call(transpose, {b}, "/weight");
  const double alpha = node.attributes.Float("alpha", 1), beta = node.attributes.Float("beta", 1);
  node.attributes.Ignore("broadcast");  // of opset 6; later ones always do
  const bool has_c = node.HasInput(2) && beta != 0;
  TensorRef result = node.Call(OpKind::kMatMul, {a, b}, has_c || alpha != 1 ? "/product" : "");
  if (alpha != 1) {
    result = node.Call({OpKind::kScale, {{"factor", alpha}}}, {result}, has_c ? "/alpha" : "");
  }
  if (has_c) {
    const std::vector<int64_t> sizes = node.Sizes(result);
    TensorRef c = node.Operand(2);
    if (beta != 1) c = node.Call({OpKind::kScale, {{"factor", beta}}}, {c}, "/beta");
    result = node.Call(OpKind::kAdd, {result, c});
    node.Expect(node.Sizes(result) == sizes, "input 2 does not broadcast to the product");
  }
  node.Define(0, result);
}

void ImportEinsum(NodeImporter& node) {
  std::vector<TensorRef> operands;
  for (int i = 0; i < node.num_inputs(); ++i) operands.push_back(node.Operand(i));
  const std::string equation = node.attributes.String("equation", "");
  if (!node.ok()) return;
  const absl::StatusOr<TensorRef> result =
      AddEinsum(&node.state().model.graph, equation, std::move(operands), CallName(node.node()));
  if (node.Expect(result.ok(), result.status().message())) node.Define(0, *result);
}

}  // namespace isomer
