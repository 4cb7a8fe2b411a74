// Convolution, pooling and matrix products.
#include <algorithm>
#include <utility>

#include "models/onnx/operators.h"

namespace isomer {
namespace {

// How a window moves over an image; every list is [y, x], padding [top, left, bottom, right].
struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
};

// Reads the attributes that Conv and the pools share. `image` are the sizes [y, x].
Window ReadWindow(NodeImporter& node, std::vector<int64_t> kernel,
                  const std::vector<int64_t>& image) {
  Window window;
  window.kernel = std::move(kernel);
  window.stride = node.attributes.Ints("strides", {1, 1});
  window.dilation = node.attributes.Ints("dilations", {1, 1});
  window.padding = node.attributes.Ints("pads", {0, 0, 0, 0});
  const std::string auto_pad = node.attributes.String("auto_pad", "NOTSET");
  if (!node.Expect(
          window.kernel.size() == 2 && window.stride.size() == 2 && window.dilation.size() == 2 &&
              window.padding.size() == 4,
          "kernel_shape, strides and dilations need 2 numbers, pads 4: images have 2 dims")) {
    return window;
  }
  for (const auto* list : {&window.kernel, &window.stride, &window.dilation, &window.padding}) {
    for (int64_t value : *list) {
      const int64_t least = list == &window.padding ? 0 : 1;
      if (!node.Expect(value >= least && value <= (1 << 24),
                       "a kernel, stride, dilation or pad is ", value)) {
        return window;
      }
    }
  }
  if (auto_pad == "NOTSET") return window;
  window.padding = {0, 0, 0, 0};
  if (auto_pad == "VALID") return window;
  if (!node.Expect(auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", "auto_pad ",
                   QuotedName(auto_pad), " is not known")) {
    return window;
  }
  // As many windows as strides fit the image; an odd element of padding goes to one side.
  for (int i : {0, 1}) {
    const int64_t windows = (image[i] + window.stride[i] - 1) / window.stride[i];
    const int64_t span = window.dilation[i] * (window.kernel[i] - 1) + 1;
    const int64_t total = std::max<int64_t>(0, (windows - 1) * window.stride[i] + span - image[i]);
    window.padding[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.padding[2 + i] = total - window.padding[i];
  }
  return window;
}

// Fails unless the operand is a batch of images, [n, c, y, x].
bool ExpectImages(NodeImporter& node, int operand, TensorRef x) {
  return node.Expect(!node.ok() || node.Rank(x) == 4, "input ", operand, " has rank ", node.Rank(x),
                     "; only rank 4, images of 2 dims, is read");
}

TensorRef Transposed(NodeImporter& node, TensorRef x, absl::string_view suffix) {
  return node.Call({OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}}, {x}, suffix);
}

}  // namespace

void ImportConv(NodeImporter& node) {
  const TensorRef x = node.Operand(0), w = node.Operand(1);
  if (!ExpectImages(node, 0, x) || !ExpectImages(node, 1, w)) return;
  const std::vector<int64_t> image = node.Sizes(x), weight = node.Sizes(w);
  const std::vector<int64_t> kernel = {weight[2], weight[3]};
  node.Expect(node.attributes.Ints("kernel_shape", kernel) == kernel,
              "kernel_shape differs from dims 2 and 3 of the weight");
  const Window window = ReadWindow(node, kernel, {image[2], image[3]});
  const Operator conv = {OpKind::kConv2d,
                         {{"stride", window.stride},
                          {"padding", window.padding},
                          {"dilation", window.dilation},
                          {"groups", node.attributes.Int("group", 1)}}};
  if (!node.HasInput(2)) return node.Define(0, node.Call(conv, {x, w}));
  const TensorRef product = node.Call(conv, {x, w}, "/product");
  const TensorRef bias = node.Operand(2);
  if (!node.Expect(!node.ok() || node.Sizes(bias) == std::vector<int64_t>{weight[0]},
                   "the bias has not one element for each of ", weight[0], " output channels")) {
    return;
  }
  const TensorRef per_channel = node.Reshape(bias, {1, weight[0], 1, 1}, "/bias");
  node.Define(0, node.Call(OpKind::kAdd, {product, per_channel}));
}

void ImportPool(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  if (!ExpectImages(node, 0, x)) return;
  const std::vector<int64_t> image = node.Sizes(x);
  const Window window =
      ReadWindow(node, node.attributes.Ints("kernel_shape", {}), {image[2], image[3]});
  if (!node.ok()) return;
  node.Expect(window.dilation == std::vector<int64_t>{1, 1}, "dilated pooling is not read");
  node.Expect(node.attributes.Int("storage_order", 0) == 0, "storage_order is not 0");
  const bool rounds_up = node.attributes.Int("ceil_mode", 0) == 1;
  for (int i : {0, 1}) {
    const int64_t room =
        image[2 + i] + window.padding[i] + window.padding[2 + i] - window.kernel[i];
    node.Expect(!rounds_up || room % window.stride[i] == 0, "ceil_mode is set, and dim ", 2 + i,
                " does not divide into whole windows");
  }
  Operator pool(
      node.op() == "MaxPool" ? OpKind::kMaxPool : OpKind::kAvgPool,
      {{"kernel", window.kernel}, {"stride", window.stride}, {"padding", window.padding}});
  if (pool.kind() == OpKind::kAvgPool) {
    pool.Set("count_include_pad", node.attributes.Int("count_include_pad", 0));
  }
  node.Define(0, node.Call(std::move(pool), {x}));
}

void ImportMatMul(NodeImporter& node) {
  const TensorRef a = node.Operand(0), b = node.Operand(1);
  node.Define(0, node.Call(OpKind::kMatMul, {a, b}));
}

// alpha * A * B + beta * C, with A or B transposed first.
void ImportGemm(NodeImporter& node) {
  TensorRef a = node.Operand(0), b = node.Operand(1);
  for (int i : {0, 1}) {
    const int rank = node.Rank(i == 0 ? a : b);
    if (!node.Expect(!node.ok() || rank == 2, "input ", i, " has rank ", rank, ", not 2")) return;
  }
  if (node.attributes.Int("transA", 0) != 0) a = Transposed(node, a, "/a");
  if (node.attributes.Int("transB", 0) != 0) b = Transposed(node, b, "/weight");
  const double alpha = node.attributes.Float("alpha", 1), beta = node.attributes.Float("beta", 1);
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

}  // namespace isomer
