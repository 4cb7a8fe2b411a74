// Matrix products, convolutions, pooling.
#include <algorithm>

#include "models/onnx/export/export_operators.h"

namespace isomer {
namespace {

// The values of the attribute `activation` of Linear.
std::string Activated(NodeExporter& node, int64_t activation, const std::string& x) {
  switch (activation) {
    case 1:
      return node.Add("Relu", {x});
    case 2:
      return GeluOf(node, x, node.InType(0).dtype);
    case 3:
      return node.Add("Tanh", {x});
    case 4:
      return node.Add("Sigmoid", {x});
    case 5:
      return SwishOf(node, x);
    default:
      node.Fail("activation ", activation, " is not known");
      return x;
  }
}

// [sizes, ..] of windows that follow one another without gaps; empty if they are not alike.
std::vector<int64_t> EqualWindows(const std::vector<int64_t>& image,
                                  const std::vector<int64_t>& output) {
  std::vector<int64_t> windows;
  for (size_t i = 0; i < output.size(); ++i) {
    if (image[2 + i] % output[i] != 0) return {};
    windows.push_back(image[2 + i] / output[i]);
  }
  return windows;
}

// The matrix [size, windows] that averages window w, [floor(w s / n), ceil((w + 1) s / n)).
std::string AveragingMatrix(NodeExporter& node, int64_t size, int64_t windows, bool transposed) {
  std::vector<double> values(size * windows, 0);
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t begin = w * size / windows, end = ((w + 1) * size + windows - 1) / windows;
    for (int64_t i = begin; i < end; ++i) {
      values[transposed ? w * size + i : i * windows + w] = 1.0 / static_cast<double>(end - begin);
    }
  }
  const std::vector<int64_t> dims =
      transposed ? std::vector<int64_t>{windows, size} : std::vector<int64_t>{size, windows};
  return node.Numbers(dims, values, node.InType(0).dtype);
}

}  // namespace

void ExportLinear(NodeExporter& node) {
  const int64_t activation = node.op().Int("activation");
  const bool has_bias = node.num_inputs() > 2;
  if (!has_bias && activation == 0) return node.Result("MatMul", {node.In(0), node.In(1)});
  const std::string product = node.Add("MatMul", {node.In(0), node.In(1)});
  if (activation == 0) return node.Result("Add", {product, node.In(2)});
  const std::string sum = has_bias ? node.Add("Add", {product, node.In(2)}) : product;
  node.Result("Identity", {Activated(node, activation, sum)});
}

void ExportConvolution(NodeExporter& node) {
  const std::vector<int64_t> weight = node.InSizes(1);
  node.Result("Conv", {node.In(0), node.In(1)},
              {{"kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end())},
               {"strides", node.op().Ints("stride")},
               {"pads", node.op().Ints("padding")},
               {"dilations", node.op().Ints("dilation")},
               {"group", node.op().Int("groups")}});
}

void ExportConvTranspose(NodeExporter& node) {
  const std::vector<int64_t> weight = node.InSizes(1);
  node.Result("ConvTranspose", {node.In(0), node.In(1)},
              {{"kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end())},
               {"strides", node.op().Ints("stride")},
               {"pads", node.op().Ints("padding")},
               {"dilations", node.op().Ints("dilation")},
               {"output_padding", node.op().Ints("output_padding")},
               {"group", node.op().Int("groups")}});
}

void ExportPool(NodeExporter& node) {
  OnnxAttributeList attributes = {{"kernel_shape", node.op().Ints("kernel")},
                                  {"strides", node.op().Ints("stride")},
                                  {"pads", node.op().Ints("padding")}};
  if (node.kind() == OpKind::kMaxPool) return node.Result("MaxPool", {node.In(0)}, attributes);
  attributes.push_back({"count_include_pad", node.op().Int("count_include_pad")});
  node.Result("AveragePool", {node.In(0)}, attributes);
}

// Windows that are not alike: a matrix for each of one or two dims.
void ExportAdaptivePool(NodeExporter& node) {
  const std::vector<int64_t> image = node.InSizes(0), output = node.op().Ints("output");
  if (std::count(output.begin(), output.end(), 1) == static_cast<int64_t>(output.size())) {
    return node.Result("GlobalAveragePool", {node.In(0)});
  }
  const std::vector<int64_t> windows = EqualWindows(image, output);
  if (!windows.empty()) {
    return node.Result("AveragePool", {node.In(0)},
                       {{"kernel_shape", windows}, {"strides", windows}});
  }
  if (output.size() > 2) return node.Fail("windows of several sizes in three dims");
  const std::string last = AveragingMatrix(node, image.back(), output.back(), /*transposed=*/false);
  if (output.size() == 1) return node.Result("MatMul", {node.In(0), last});
  const std::string rows = node.Add("MatMul", {node.In(0), last});
  node.Result("MatMul", {AveragingMatrix(node, image[2], output[0], /*transposed=*/true), rows});
}

}  // namespace isomer
