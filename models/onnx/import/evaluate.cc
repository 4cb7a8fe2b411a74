#include "models/onnx/import/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "models/onnx/graph/fold.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/half.h"

namespace isomer {
namespace {

constexpr double kMostWork = 1 << 24;       // points of iteration spaces
constexpr double kNoWork = 1 << 12;         // so few that they are not counted
constexpr int64_t kMostElements = 1 << 22;  // of one tensor: positions of 4 million tokens
// Of one tensor that is kept without its repetitions: the causal mask of 8,192 tokens.
constexpr int64_t kMostRepeated = 1 << 26;

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

struct WorkLimit {
  int64_t elements;  // of one tensor
  double work;       // of one node
};

// Takes the work from `budget` where it suffices.
bool IsLittleWork(const Graph& graph, const WorkLimit& limit, double* budget) {
  double work = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    for (const TensorType& type : node.outputs) {
      if (type.NumElements() > limit.elements) return false;
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
  if (work > std::min(limit.work, *budget)) return false;
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
  std::vector<float> floats;
  for (double number : value.part(0, 0).data) {
    if (tensor.is_float()) {
      floats.push_back(Rounded(number, tensor.dtype));
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
                                                 const WorkLimit& limit, double* budget,
                                                 ImportState* alone) {
  NodeImporter importer(node, alone);
  op.import(importer);
  if (!importer.Finish().ok() || !IsLittleWork(alone->model.graph, limit, budget)) {
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

// Operators whose output's elements are made of those at their places, operands broadcast.
bool IsElementByElement(const std::string& op) {
  static const auto* const names = new std::set<std::string>{"Abs",
                                                             "Add",
                                                             "And",
                                                             "Cast",
                                                             "Ceil",
                                                             "Cos",
                                                             "Div",
                                                             "Equal",
                                                             "Erf",
                                                             "Exp",
                                                             "Floor",
                                                             "Greater",
                                                             "GreaterOrEqual",
                                                             "IsInf",
                                                             "IsNaN",
                                                             "Less",
                                                             "LessOrEqual",
                                                             "Log",
                                                             "Max",
                                                             "Min",
                                                             "Mod",
                                                             "Mul",
                                                             "Neg",
                                                             "Not",
                                                             "Or",
                                                             "Pow",
                                                             "Reciprocal",
                                                             "Relu",
                                                             "Round",
                                                             "Sigmoid",
                                                             "Sign",
                                                             "Sin",
                                                             "Sqrt",
                                                             "Sub",
                                                             "Tanh",
                                                             "Where",
                                                             "Xor"};
  return names->contains(op);
}

// What `name` is without its repetitions, if it is a constant that is not trained.
std::optional<RepeatedTensor> RepeatedNamed(const std::string& name, const ImportState& state) {
  const auto known = state.repeated.find(name);
  if (known != state.repeated.end()) return known->second;
  const auto found = state.onnx.constants.find(name);
  if (found == state.onnx.constants.end()) return std::nullopt;
  const OnnxTensor& tensor = found->second;
  if ((tensor.is_float() && !tensor.is_literal) || tensor.size() > kMostRepeated) {
    return std::nullopt;
  }
  return RepeatedTensor{OncePerDim(tensor), tensor.dims};
}

// The dims to which all of `operands` broadcast; nothing where they do not.
std::optional<std::vector<int64_t>> BroadcastDims(
    const std::vector<std::vector<int64_t>>& operands) {
  std::vector<int64_t> result;
  for (const std::vector<int64_t>& dims : operands) {
    if (dims.size() > result.size()) result.insert(result.begin(), dims.size() - result.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& size = result[result.size() - dims.size() + i];
      if (size != dims[i] && size != 1 && dims[i] != 1) return std::nullopt;
      if (size == 1) size = dims[i];
    }
  }
  return result;
}

// Repeats `tensor` along the one axis of `axes`; false where there is none.
bool WriteOut(const std::vector<int64_t>& axes, RepeatedTensor* tensor) {
  const int rank = static_cast<int>(tensor->dims.size());
  const absl::StatusOr<int> axis =
      axes.size() == 1 ? NormalizeAxis(axes[0], rank) : absl::InvalidArgumentError("not one axis");
  if (!axis.ok()) return false;
  std::vector<int64_t> dims = tensor->once.dims;
  dims[*axis] = tensor->dims[*axis];
  const int64_t elements = NumElementsOf(dims);
  if (elements < 0 || elements > kMostRepeated) return false;
  tensor->once = Written({tensor->once, dims});
  return true;
}

}  // namespace

std::optional<std::vector<OnnxTensor>> EvaluateConstantNode(const OnnxNode& node,
                                                            const OnnxOperator& op,
                                                            ImportState* state) {
  if (node.op == "GatherND" || node.op == "ScatterND") {
    std::optional<OnnxTensor> slices =
        node.op == "GatherND" ? GatheredSlices(node, *state) : ScatteredSlices(node, *state);
    if (slices) return std::vector<OnnxTensor>{*std::move(slices)};
  }
  std::optional<ImportState> alone = OperandsAlone(node, *state);
  if (!alone || alone->onnx.constants.empty()) return std::nullopt;
  return OutputsOf(node, op, {kMostElements, kMostWork}, &state->work_budget, &*alone);
}

bool EvaluateRepeated(const OnnxNode& node, ImportState* state) {
  // The second operand says along what.
  const bool expands = node.op == "Expand" && node.inputs.size() == 2;
  const bool sums = node.op == "CumSum" && node.inputs.size() == 2;
  if (node.outputs.size() != 1 || (!expands && !sums && !IsElementByElement(node.op))) return false;
  std::vector<RepeatedTensor> operands;
  std::vector<std::vector<int64_t>> dims;
  for (size_t i = 0; i < (expands || sums ? 1 : node.inputs.size()); ++i) {
    std::optional<RepeatedTensor> operand = RepeatedNamed(node.inputs[i], *state);
    if (!operand) return false;
    dims.push_back(operand->dims);
    operands.push_back(*std::move(operand));
  }
  if (expands || sums) {
    const auto second = state->onnx.constants.find(node.inputs[1]);
    if (second == state->onnx.constants.end() || second->second.is_float()) return false;
    const std::vector<int64_t>& ints = second->second.ints;
    if (expands) {
      dims.push_back(ints);
    } else if (!WriteOut(ints, &operands[0])) {
      return false;
    }
  }
  std::optional<std::vector<int64_t>> all = BroadcastDims(dims);
  if (!all || std::any_of(all->begin(), all->end(), [](int64_t size) { return size < 1; })) {
    return false;
  }
  const int64_t elements = NumElementsOf(*all);
  // What EvaluateConstantNode takes.
  const bool is_little = elements <= kMostElements / static_cast<int64_t>(node.inputs.size());
  if (elements < 0 || (is_little && !sums)) return false;
  RepeatedTensor result{.once = operands[0].once, .dims = *std::move(all)};
  if (node.op == "Cast") {
    // Of infinities, too, which a graph would not cast.
    result.once.is_literal = true;
    int64_t budget = 2 * kMostRepeated;
    const auto folded = FoldNode(node, {{&result.once}}, &budget);
    if (!folded.ok() || !folded->has_value()) return false;
    result.once = **folded;
  } else if (!expands) {
    ImportState alone;
    alone.onnx.opset = state->onnx.opset;
    alone.onnx.opsets = state->onnx.opsets;
    for (size_t i = 0; i < operands.size(); ++i) {
      alone.onnx.constants[node.inputs[i]] = std::move(operands[i].once);
    }
    if (sums) alone.onnx.constants[node.inputs[1]] = state->onnx.constants[node.inputs[1]];
    std::optional<std::vector<OnnxTensor>> values =
        OutputsOf(node, *FindOnnxOperator(node.op), {kMostRepeated, kMostRepeated * 4.0},
                  &state->repeated_work_budget, &alone);
    if (!values) return false;
    result.once = OncePerDim(std::move((*values)[0]));
  }
  result.once.is_literal = true;
  std::vector<int64_t>& once = result.once.dims;
  once.insert(once.begin(), result.dims.size() - once.size(), 1);
  if (elements <= kMostElements) {
    state->onnx.constants[node.outputs[0]] = Written(result);
  } else {
    state->repeated[node.outputs[0]] = std::move(result);
  }
  return true;
}

}  // namespace isomer
