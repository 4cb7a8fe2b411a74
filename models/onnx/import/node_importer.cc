#include "models/onnx/import/node_importer.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_join.h"
#include "models/onnx/graph/fold.h"
#include "models/onnx/import/evaluate_repeated.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Marks nodes added since the last call.
void UpdateDependsOnData(ImportState* state) {
  const Graph& graph = state->model.graph;
  for (int id = static_cast<int>(state->depends_on_data.size()); id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    bool depends = node.op.kind() == OpKind::kInput;
    for (TensorRef input : node.inputs) {
      depends = depends || state->depends_on_data[input.node.value];
    }
    state->depends_on_data.push_back(depends);
  }
}

// What the model keeps of a tensor: floats. Of constants, not where they lie: rewrites may rest on
// what they are.
absl::StatusOr<StoredValues> ModelValues(const std::string& name, bool is_weight,
                                         const OnnxTensor& tensor) {
  if (tensor.is_float()) {
    if (is_weight || tensor.floats.file() == nullptr) return tensor.floats;
    return tensor.floats.ToVector();
  }
  std::vector<float> values;
  values.reserve(tensor.ints.size());
  constexpr int64_t kExact = int64_t{1} << 24;
  for (int64_t value : tensor.ints) {
    values.push_back(static_cast<float>(value));
    const float held = values.back();
    const bool fits = (value >= -kExact && value <= kExact) ||
                      (held >= -0x1p63f && held < 0x1p63f && static_cast<int64_t>(held) == value);
    if (fits) continue;
    return absl::UnimplementedError(
        absl::StrCat("the constant ", QuotedName(name), " holds ", value,
                     ", and as an operand may hold only integers that a float can"));
  }
  return values;
}

// A repeated constant enters the graph as what it is once, and what repeats it.
absl::StatusOr<TensorRef> AddRepeated(const std::string& name, RepeatedConstant value,
                                      ImportState* state) {
  std::optional<RepeatedConstant> one = AsOnePart(std::move(value));
  if (!one) {
    return absl::UnimplementedError(
        absl::StrCat("the constant ", QuotedName(name), " has too many elements"));
  }
  const std::string once = absl::StrCat(name, "/once");
  TensorType type = SequentialType(one->parts[0].dims, one->parts[0].dtype);
  ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
  ISOMER_ASSIGN_OR_RETURN(state->model.weights[once],
                          ModelValues(name, /*is_weight=*/false, one->parts[0]));
  Graph& graph = state->model.graph;
  const TensorRef leaf = graph.AddConstant(once, std::move(type));
  if (one->parts[0].dims == one->dims) return leaf;
  return graph.AddOp({OpKind::kExpand, {{"shape", one->dims}}}, {leaf}, name);
}

}  // namespace

std::string CallName(const OnnxNode& node, int output) {
  const std::string& name = node.outputs[output];
  return node.module.empty() || node.is_named_by_module ? name
                                                        : absl::StrCat(node.module, "/", name);
}

absl::StatusOr<TensorRef> TensorNamed(const std::string& name, ImportState* state) {
  const auto known = state->tensors.find(name);
  if (known != state->tensors.end()) return known->second;
  const auto repeated = state->repeated.find(name);
  if (repeated != state->repeated.end() && NumElementsOf(repeated->second.dims) > kFewElements) {
    ISOMER_ASSIGN_OR_RETURN(const TensorRef tensor, AddRepeated(name, repeated->second, state));
    state->tensors[name] = tensor;
    return tensor;
  }
  TensorType type;
  bool is_trained = state->untrained.count(name) == 0;
  if (const auto input = state->leaves.weights.find(name); input != state->leaves.weights.end()) {
    type = input->second;
  } else {
    const auto constant = state->onnx.constants.find(name);
    if (state->sequences.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuotedName(name), " is a sequence, and it takes a tensor"));
    }
    if (constant == state->onnx.constants.end()) {
      return absl::InternalError(absl::StrCat("tensor ", QuotedName(name), " was not imported"));
    }
    const OnnxTensor& tensor = constant->second;
    type = SequentialType(tensor.dims, tensor.dtype);
    if (absl::Status status = ValidateTensorType(type); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the value of ", QuotedName(name), ": ", status.message(),
                       tensor.size() == 0 ? absl::StrCat("; ", kNoEmptyTensors) : ""));
    }
    is_trained = is_trained && tensor.is_float() && !tensor.is_literal;
    ISOMER_ASSIGN_OR_RETURN(state->model.weights[name], ModelValues(name, is_trained, tensor));
  }
  const TensorRef leaf = is_trained ? state->model.graph.AddWeight(name, std::move(type))
                                    : state->model.graph.AddConstant(name, std::move(type));
  state->tensors[name] = leaf;
  return leaf;
}

TensorRef NodeImporter::Operand(int i) {
  if (!Expect(HasInput(i), "input ", i, " is missing")) return {};
  absl::StatusOr<TensorRef> tensor = TensorNamed(node_.inputs[i], state_);
  if (!tensor.ok()) {
    Fail(tensor.status().message());
    return {};
  }
  return *tensor;
}

const OnnxTensor* NodeImporter::Constant(int i) const {
  if (!HasInput(i)) return nullptr;
  WriteOut(node_.inputs[i], state_);
  const auto found = state_->onnx.constants.find(node_.inputs[i]);
  return found == state_->onnx.constants.end() ? nullptr : &found->second;
}

const OnnxTensor* NodeImporter::Scalar(int i, TensorRef other) const {
  const OnnxTensor* const constant = Constant(i);
  if (constant == nullptr || constant->size() != 1) return nullptr;
  return static_cast<int>(constant->dims.size()) <= Rank(other) ? constant : nullptr;
}

std::optional<std::vector<int64_t>> NodeImporter::SizesIfEverywhere(int i, double value) const {
  if (!HasInput(i)) return std::nullopt;
  const auto repeated = state_->repeated.find(node_.inputs[i]);
  if (repeated != state_->repeated.end()) {
    for (const OnnxTensor& part : repeated->second.parts) {
      for (int64_t k = 0; k < part.size(); ++k) {
        if (part.Number(k) != value) return std::nullopt;
      }
    }
    return repeated->second.dims;
  }
  const OnnxTensor* const tensor = Constant(i);
  if (tensor == nullptr || (tensor->is_float() && !tensor->is_literal)) return std::nullopt;
  for (int64_t k = 0; k < tensor->size(); ++k) {
    if (tensor->Number(k) != value) return std::nullopt;
  }
  return tensor->dims;
}

std::vector<int64_t> NodeImporter::ConstantInts(int i, std::vector<int64_t> absent) {
  if (!HasInput(i)) return absent;
  const OnnxTensor* const constant = Constant(i);
  if (constant == nullptr || !IsInteger(constant->dtype) || constant->dims.size() > 1) {
    Fail("input ", i, " ", QuotedName(node_.inputs[i]), " is not a constant list of integers");
    return absent;
  }
  return constant->ints;
}

std::vector<int64_t> NodeImporter::Sizes(TensorRef tensor) const {
  const Graph& graph = state_->model.graph;
  return graph.Contains(tensor) ? graph.type(tensor).Sizes() : std::vector<int64_t>();
}

DataType NodeImporter::Type(TensorRef tensor) const {
  const Graph& graph = state_->model.graph;
  return graph.Contains(tensor) ? graph.type(tensor).dtype : DataType::kFloat32;
}

int NodeImporter::Axis(int64_t axis, int rank) {
  const absl::StatusOr<int> from_front = NormalizeAxis(axis, rank);
  if (from_front.ok()) return *from_front;
  Fail(from_front.status().message());
  return 0;
}

TensorRef NodeImporter::Call(Operator op, std::vector<TensorRef> operands,
                             absl::string_view suffix) {
  constexpr int kMostNodes = 1 << 17;
  if (!ok()) return {};
  if (state_->model.graph.num_nodes() >= kMostNodes) {
    Refuse("the model has more than ", kMostNodes, " operators with it");
    return {};
  }
  std::string name = absl::StrCat(CallName(node_), suffix);
  absl::StatusOr<TensorRef> result = state_->model.graph.AddOp(std::move(op), std::move(operands));
  if (!result.ok()) {
    Fail(result.status().message());
    return {};
  }
  state_->model.graph.set_name(result->node, std::move(name));
  UpdateDependsOnData(state_);
  return *result;
}

TensorRef NodeImporter::Reshape(TensorRef x, std::vector<int64_t> shape, absl::string_view suffix) {
  if (Sizes(x) == shape) return x;
  return Call({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x}, suffix);
}

TensorRef NodeImporter::ReshapeAsStated(TensorRef x, const std::vector<int64_t>& stated,
                                        bool allow_zero) {
  if (!ok()) return {};
  UpdateDependsOnData(state_);
  const bool fixes_dim_0 = !stated.empty() && stated[0] > 0;
  if (state_->leaves.replaced_batch != 0 && state_->depends_on_data[x.node.value] && fixes_dim_0) {
    Fail("its shape [", absl::StrJoin(stated, ","), "] fixes dim 0 at ", stated[0],
         ", so the batch ", state_->leaves.replaced_batch, " of the file cannot become ",
         state_->leaves.batch, "; export the model with that batch, or with a symbolic one");
    return {};
  }
  const OnnxLeaves& leaves = state_->leaves;
  if (fixes_dim_0 && leaves.batch_symbol.empty() && leaves.batch > 1 &&
      stated[0] % leaves.batch == 0 && state_->depends_on_data[x.node.value] &&
      state_->batch_fixed_by.empty()) {
    state_->batch_fixed_by =
        absl::StrCat(node_.label, ", shape [", absl::StrJoin(stated, ","), "]");
  }
  absl::StatusOr<std::vector<int64_t>> shape = ReshapedDims(Sizes(x), stated, allow_zero);
  if (!shape.ok()) {
    Fail(shape.status().message());
    return {};
  }
  return Reshape(x, *std::move(shape));
}

void NodeImporter::Define(int output, TensorRef tensor) {
  if (ok() && output < num_outputs()) state_->tensors[node_.outputs[output]] = tensor;
}

absl::Status NodeImporter::Finish() {
  status_.Update(attributes.Finish());
  return status_;
}

}  // namespace isomer
