#include "models/onnx/import/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "models/onnx/graph/fold.h"
#include "pcg/evaluation/evaluator.h"

namespace isomer {
namespace {

constexpr double kMostWork = 1 << 24;       // points of iteration spaces
constexpr double kNoWork = 1 << 12;         // so few that they are not counted
constexpr int64_t kMostElements = 1 << 22;  // of one tensor: positions of 4 million tokens

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

std::optional<OnnxTensor> TensorOf(const Value<double>& value) {
  OnnxTensor tensor;
  tensor.dtype = value.type.dtype;
  tensor.dims = value.type.Sizes();
  tensor.is_literal = true;
  std::vector<float> floats;
  for (double number : value.part(0, 0).data) {
    if (tensor.is_float()) {
      floats.push_back(RoundedTo(tensor.dtype, number));
    } else if (std::abs(number) <= 0x1p53) {
      tensor.ints.push_back(static_cast<int64_t>(number));
    } else {
      return std::nullopt;
    }
  }
  tensor.floats = std::move(floats);
  return tensor;
}

// The outputs of a node whose operands, constants, are all that `alone` holds.
std::optional<std::vector<OnnxTensor>> OutputsOf(const OnnxNode& node, const OnnxOperator& op,
                                                 double* budget, ImportState* alone) {
  NodeImporter importer(node, alone);
  op.import(importer);
  if (!importer.Finish().ok() || !IsLittleWork(alone->model.graph, budget)) {
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

// Slices of a table that a list of indices [.., k] of its first k dims names.
struct Slices {
  int64_t size = 1;           // elements of each
  std::vector<int64_t> rows;  // where they are, in slices
};
std::optional<Slices> SlicesAt(const OnnxTensor& table, const OnnxTensor& at) {
  if (at.is_float() || at.dims.empty()) return std::nullopt;
  const int64_t k = at.dims.back();
  if (k < 1 || k > static_cast<int64_t>(table.dims.size())) return std::nullopt;
  Slices slices;
  for (size_t d = k; d < table.dims.size(); ++d) slices.size *= table.dims[d];
  for (int64_t i = 0; i < at.size(); i += k) {
    int64_t row = 0;
    for (int64_t d = 0; d < k; ++d) {
      const int64_t size = table.dims[d];
      const int64_t index = at.ints[i + d] < 0 ? at.ints[i + d] + size : at.ints[i + d];
      if (index < 0 || index >= size) return std::nullopt;
      row = row * size + index;
    }
    slices.rows.push_back(row);
  }
  return slices;
}

// A constant that is not trained; null for anything else.
const OnnxTensor* UntrainedConstant(const OnnxNode& node, size_t input, const ImportState& state) {
  const auto found = state.onnx.constants.find(node.inputs[input]);
  if (found == state.onnx.constants.end()) return nullptr;
  const OnnxTensor& tensor = found->second;
  return tensor.is_float() && !tensor.is_literal ? nullptr : &tensor;
}

// GatherND of constants without batch dims. As a call it would look at all of the table for each
// element, which is too much work.
std::optional<OnnxTensor> GatheredSlices(const OnnxNode& node, const ImportState& state) {
  if (node.inputs.size() != 2 || node.outputs.size() != 1) return std::nullopt;
  const auto batch_dims = node.attributes.find("batch_dims");
  if (batch_dims != node.attributes.end() && batch_dims->second.i() != 0) return std::nullopt;
  const OnnxTensor *const x = UntrainedConstant(node, 0, state), *const at = UntrainedConstant(
                                                                     node, 1, state);
  if (x == nullptr || at == nullptr) return std::nullopt;
  const std::optional<Slices> slices = SlicesAt(*x, *at);
  if (!slices) return std::nullopt;
  OnnxTensor result;
  result.dtype = x->dtype;
  result.is_literal = true;
  result.dims.assign(at->dims.begin(), at->dims.end() - 1);
  result.dims.insert(result.dims.end(), x->dims.begin() + at->dims.back(), x->dims.end());
  const int64_t elements = NumElementsOf(result.dims);
  if (elements < 0 || elements > kMostElements) return std::nullopt;
  std::vector<float> floats;
  for (int64_t row : slices->rows) {
    auto append = [&](const auto& from, auto* to) {
      const auto begin = from.begin() + row * slices->size;
      to->insert(to->end(), begin, begin + slices->size);
    };
    x->is_float() ? append(x->floats, &floats) : append(x->ints, &result.ints);
  }
  result.floats = std::move(floats);
  return result;
}

// ScatterND of constants that replaces slices, for the same reason.
std::optional<OnnxTensor> ScatteredSlices(const OnnxNode& node, const ImportState& state) {
  if (node.inputs.size() != 3 || node.outputs.size() != 1) return std::nullopt;
  const auto reduction = node.attributes.find("reduction");
  if (reduction != node.attributes.end() && reduction->second.s() != "none") return std::nullopt;
  const OnnxTensor *const x = UntrainedConstant(node, 0, state),
                          *const at = UntrainedConstant(node, 1, state),
                          *const updates = UntrainedConstant(node, 2, state);
  if (x == nullptr || at == nullptr || updates == nullptr || x->dtype != updates->dtype ||
      x->size() > kMostElements) {
    return std::nullopt;
  }
  const std::optional<Slices> slices = SlicesAt(*x, *at);
  if (!slices || updates->size() != static_cast<int64_t>(slices->rows.size()) * slices->size) {
    return std::nullopt;
  }
  OnnxTensor result = *x;
  std::vector<float> floats = x->floats.ToVector();
  for (size_t i = 0; i < slices->rows.size(); ++i) {
    auto replace = [&](const auto& from, auto* to) {
      const auto begin = from.begin() + static_cast<int64_t>(i) * slices->size;
      std::copy(begin, begin + slices->size, to->begin() + slices->rows[i] * slices->size);
    };
    x->is_float() ? replace(updates->floats, &floats) : replace(updates->ints, &result.ints);
  }
  if (x->is_float()) result.floats = std::move(floats);
  result.is_literal = true;
  return result;
}

// CumSum of a constant. As a call it would look at a whole line for each element.
std::optional<OnnxTensor> SummedAlong(const OnnxNode& node, const ImportState& state) {
  if (node.inputs.size() != 2 || node.outputs.size() != 1) return std::nullopt;
  OnnxAttributes attributes(node);
  const bool is_exclusive = attributes.Int("exclusive", 0) != 0;
  const bool is_reversed = attributes.Int("reverse", 0) != 0;
  const OnnxTensor *const x = UntrainedConstant(node, 0, state), *const along = UntrainedConstant(
                                                                     node, 1, state);
  if (!attributes.Finish().ok() || x == nullptr || along == nullptr || along->ints.size() != 1 ||
      x->size() > kMostElements) {
    return std::nullopt;
  }
  const absl::StatusOr<int> axis = NormalizeAxis(along->ints[0], static_cast<int>(x->dims.size()));
  if (!axis.ok()) return std::nullopt;
  int64_t inner = 1;
  for (size_t d = *axis + 1; d < x->dims.size(); ++d) inner *= x->dims[d];
  const int64_t length = x->dims[*axis];
  OnnxTensor result = *x;
  result.is_literal = true;
  std::vector<float> floats(x->is_float() ? x->size() : 0);
  for (int64_t line = 0; line < x->size() / std::max<int64_t>(length, 1); ++line) {
    const int64_t begin = line / inner * length * inner + line % inner;
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = begin + (is_reversed ? length - 1 - i : i) * inner;
      const double before = sum;
      sum += x->Number(at);
      const double value = is_exclusive ? before : sum;
      if (x->is_float()) {
        floats[at] = RoundedTo(x->dtype, value);
      } else if (std::abs(value) <= 0x1p53) {
        result.ints[at] = static_cast<int64_t>(value);
      } else {
        return std::nullopt;
      }
    }
  }
  if (x->is_float()) result.floats = std::move(floats);
  return result;
}

// What looks at few elements for each that it gives, done so.
std::optional<OnnxTensor> DoneDirectly(const OnnxNode& node, const ImportState& state) {
  if (node.op == "GatherND") return GatheredSlices(node, state);
  if (node.op == "ScatterND") return ScatteredSlices(node, state);
  if (node.op == "CumSum") return SummedAlong(node, state);
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<OnnxTensor>> EvaluateConstantNode(const OnnxNode& node,
                                                            const OnnxOperator& op,
                                                            ImportState* state) {
  if (std::optional<OnnxTensor> value = DoneDirectly(node, *state)) {
    return std::vector<OnnxTensor>{*std::move(value)};
  }
  std::optional<ImportState> alone = OperandsAlone(node, *state);
  if (!alone || alone->onnx.constants.empty()) return std::nullopt;
  return OutputsOf(node, op, &state->work_budget, &*alone);
}

}  // namespace isomer
