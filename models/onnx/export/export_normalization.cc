// Normalisations and losses.
#include <algorithm>

#include "models/onnx/export/export_operators.h"
#include "models/onnx/tensor.h"

namespace isomer {
namespace {

const std::vector<int64_t> kLast = {-1};

std::string Mean(NodeExporter& node, const std::string& x, const std::vector<int64_t>& axes) {
  return node.Reduced("ReduceMean", x, axes, /*keepdims=*/true);
}

// sqrt(x + epsilon)
std::string Deviation(NodeExporter& node, const std::string& x, DataType dtype) {
  const std::string epsilon = node.Number(node.op().Number("epsilon"), dtype);
  return node.Add("Sqrt", {node.Add("Add", {x, epsilon})});
}

// [c] as [1, c, 1, ..], to meet the channels of operand 0.
std::string PerChannel(NodeExporter& node, const std::string& x) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  std::vector<int64_t> shape(sizes.size(), 1);
  shape[1] = sizes[1];
  return node.Reshaped(x, shape);
}

}  // namespace

void ExportSoftmax(NodeExporter& node) {
  node.Result(node.kind() == OpKind::kSoftmax ? "Softmax" : "LogSoftmax", {node.In(0)},
              {{"axis", node.op().Int("axis")}});
}

void ExportLayerNorm(NodeExporter& node) {
  node.Result("LayerNormalization", {node.In(0), node.In(1), node.In(2)},
              {{"axis", int64_t{-1}}, {"epsilon", node.op().Number("epsilon")}});
}

// x / sqrt(mean(x^2) + epsilon) * g
void ExportRmsNorm(NodeExporter& node) {
  const std::string square = node.Add("Mul", {node.In(0), node.In(0)});
  const std::string deviation = Deviation(node, Mean(node, square, kLast), node.InType(0).dtype);
  node.Result("Mul", {node.Add("Div", {node.In(0), deviation}), node.In(1)});
}

// Each group is an instance of one channel; scale and shift come after.
void ExportGroupNorm(NodeExporter& node) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  const int64_t groups = node.op().Int("groups");
  const DataType dtype = node.InType(0).dtype;
  int64_t rest = 1;
  for (size_t i = 1; i < sizes.size(); ++i) rest *= sizes[i];
  const std::string grouped = node.Reshaped(node.In(0), {sizes[0], groups, rest / groups});
  const std::string ones = node.Numbers({groups}, std::vector<double>(groups, 1), dtype);
  const std::string zeros = node.Numbers({groups}, std::vector<double>(groups, 0), dtype);
  const std::string normalized = node.Add("InstanceNormalization", {grouped, ones, zeros},
                                          {{"epsilon", node.op().Number("epsilon")}});
  const std::string back = node.Reshaped(normalized, sizes);
  const std::string scaled = node.Add("Mul", {back, PerChannel(node, node.In(1))});
  node.Result("Add", {scaled, PerChannel(node, node.In(2))});
}

void ExportBatchNorm(NodeExporter& node) {
  node.Result("BatchNormalization", {node.In(0), node.In(1), node.In(2), node.In(3), node.In(4)},
              {{"epsilon", node.op().Number("epsilon")}});
}

void ExportBatchNormTraining(NodeExporter& node) {
  const int rank = node.InType(0).rank();
  std::vector<int64_t> axes, shape = {node.InSizes(0)[1]};
  for (int i = 0; i < rank; ++i) {
    if (i != 1) axes.push_back(i);
  }
  // In float32, as the statistics are that it gives.
  const DataType dtype = node.InType(0).dtype;
  const auto cast = [&](const std::string& name, DataType to) {
    if (dtype == DataType::kFloat32) return name;
    return node.Add("Cast", {name}, {{"to", int64_t{OnnxElementType(to)}}});
  };
  const std::string x = cast(node.In(0), DataType::kFloat32);
  const std::string mean = Mean(node, x, axes);
  const std::string centred = node.Add("Sub", {x, mean});
  const std::string square = node.Add("Mul", {centred, centred});
  const std::string variance = Mean(node, square, axes);
  const std::string normalized =
      cast(node.Add("Div", {centred, Deviation(node, variance, DataType::kFloat32)}), dtype);
  const std::string scaled = node.Add("Mul", {normalized, PerChannel(node, node.In(1))});
  node.ResultAt(0, "Add", {scaled, PerChannel(node, node.In(2))});
  node.ResultAt(1, "Reshape", {mean, node.Ints(shape)});
  node.ResultAt(2, "Reshape", {variance, node.Ints(shape)});
}

// ONNX has the classes in dim 1.
void ExportCrossEntropy(NodeExporter& node) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  const std::string logits = node.Reshaped(node.In(0), {-1, sizes.back()});
  const std::string labels = node.Reshaped(node.In(1), {-1});
  node.Result("SoftmaxCrossEntropyLoss", {logits, labels}, {{"reduction", std::string("mean")}});
}

void ExportMeanSquaredError(NodeExporter& node) {
  const std::string difference = node.Add("Sub", {node.In(0), node.In(1)});
  const std::string square = node.Add("Mul", {difference, difference});
  node.Result("ReduceMean", {square}, {{"keepdims", int64_t{0}}});
}

// softplus(x) - x * target
void ExportBinaryCrossEntropy(NodeExporter& node) {
  const std::string product = node.Add("Mul", {node.In(0), node.In(1)});
  const std::string each = node.Add("Sub", {node.Add("Softplus", {node.In(0)}), product});
  node.Result("ReduceMean", {each}, {{"keepdims", int64_t{0}}});
}

}  // namespace isomer
