#include "models/onnx/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "pcg/evaluator.h"
#include "pcg/support/half.h"

namespace isomer {
namespace {

constexpr double kMostWork = 1 << 22;       // points of iteration spaces
constexpr double kNoWork = 1 << 12;         // so few that they are not counted
constexpr int64_t kMostElements = 1 << 18;  // of one tensor

// A copy of the state in which the operands of `node` are all there is; nothing where one is not a
// constant, or is one to be trained.
std::optional<ImportState> OperandsAlone(const OnnxNode& node, const ImportState& state) {
  ImportState alone;
  alone.literal_budget = kMostElements;
  int64_t elements = 0;
  alone.onnx.file = state.onnx.file;
  alone.onnx.opset = state.onnx.opset;
  alone.onnx.opsets = state.onnx.opsets;
  for (const std::string& input : node.inputs) {
    if (input.empty() || alone.onnx.constants.count(input) > 0) continue;
    const auto found = state.onnx.constants.find(input);
    if (found == state.onnx.constants.end()) return std::nullopt;
    const OnnxTensor& tensor = found->second;
    elements += tensor.size();
    if ((tensor.is_float() && !tensor.is_literal) || elements > kMostElements) {
      return std::nullopt;
    }
    alone.onnx.constants[input] = tensor;
  }
  return alone;
}

// Takes the work from `budget` where it suffices.
bool IsLittleWork(const Graph& graph, double* budget) {
  double work = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    for (const TensorType& type : node.outputs) {
      if (type.NumElements() > kMostElements) return false;
    }
    if (IsLeaf(node.op.kind())) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    const absl::StatusOr<Declaration> declaration = Declare(node.op, shapes);
    if (!declaration.ok()) return false;
    double points = 1;
    for (const IterationDim& dim : declaration->dims) {
      points *= static_cast<double>(dim.size.value());
    }
    work += points;
  }
  if (work <= kNoWork) return true;
  if (work > std::min(kMostWork, *budget)) return false;
  *budget -= work;
  return true;
}

std::optional<Values<double>> ValuesOf(const Model& model) {
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    const auto stored = model.weights.find(node.name);
    if (stored == model.weights.end()) return std::nullopt;
    Array<double> array(node.outputs[0].Sizes());
    array.data.assign(stored->second.begin(), stored->second.end());
    leaves[NodeId{id}] = {node.outputs[0], {std::move(array)}};
  }
  absl::StatusOr<Values<double>> values = EvaluateGraph(model.graph, leaves);
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

float Rounded(double value, DataType dtype) {
  if (dtype == DataType::kFloat16) return Float16(value);
  if (dtype == DataType::kBFloat16) return BFloat16(value);
  return static_cast<float>(value);
}

std::optional<OnnxTensor> TensorOf(const Value<double>& value) {
  OnnxTensor tensor;
  tensor.dtype = value.type.dtype;
  tensor.dims = value.type.Sizes();
  tensor.is_literal = true;
  for (double number : value.part(0, 0).data) {
    if (tensor.is_float()) {
      tensor.floats.push_back(Rounded(number, tensor.dtype));
    } else if (std::abs(number) <= 0x1p53) {
      tensor.ints.push_back(static_cast<int64_t>(number));
    } else {
      return std::nullopt;
    }
  }
  return tensor;
}

}  // namespace

std::optional<std::vector<OnnxTensor>> EvaluateConstantNode(const OnnxNode& node,
                                                            const OnnxOperator& op,
                                                            ImportState* state) {
  std::optional<ImportState> alone = OperandsAlone(node, *state);
  if (!alone || alone->onnx.constants.empty()) return std::nullopt;
  NodeImporter importer(node, &*alone);
  op.import(importer);
  if (!importer.Finish().ok() || !IsLittleWork(alone->model.graph, &state->work_budget)) {
    return std::nullopt;
  }
  std::vector<TensorRef> outputs;
  for (const std::string& output : node.outputs) {
    const auto found = alone->tensors.find(output);
    if (output.empty()) {
      outputs.push_back({});
    } else if (found == alone->tensors.end()) {
      return std::nullopt;
    } else {
      outputs.push_back(found->second);
      alone->model.graph.AddOutput(output, found->second);
    }
  }
  const std::optional<Values<double>> values = ValuesOf(alone->model);
  if (!values) return std::nullopt;
  std::vector<OnnxTensor> tensors(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    std::optional<OnnxTensor> tensor =
        TensorOf((*values)[outputs[i].node.value][outputs[i].output]);
    if (!tensor) return std::nullopt;
    tensors[i] = *std::move(tensor);
  }
  return tensors;
}

}  // namespace isomer
