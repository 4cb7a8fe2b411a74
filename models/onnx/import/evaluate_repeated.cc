#include "models/onnx/import/evaluate_repeated.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "models/onnx/graph/attributes.h"
#include "models/onnx/graph/fold.h"
#include "models/onnx/graph/repeated_constant.h"
#include "models/onnx/import/import_nodes.h"

namespace isomer {
namespace {

// Operators of ONNX whose elements depend on those of the operands, broadcast, at the same place.
bool IsElementwise(const std::string& op) {
  static constexpr const char* kOperators[] = {"Abs",
                                               "Add",
                                               "And",
                                               "Cast",
                                               "Ceil",
                                               "Clip",
                                               "Cos",
                                               "Div",
                                               "Equal",
                                               "Exp",
                                               "Less",
                                               "Log",
                                               "Max",
                                               "Min",
                                               "Floor",
                                               "Greater",
                                               "GreaterOrEqual",
                                               "LessOrEqual",
                                               "IsInf",
                                               "Mod",
                                               "Mul",
                                               "Neg",
                                               "Not",
                                               "IsNaN",
                                               "Pow",
                                               "Reciprocal",
                                               "Or",
                                               "Round",
                                               "Sign",
                                               "Sin",
                                               "Sqrt",
                                               "Sub",
                                               "Where",
                                               "Xor"};
  return std::find(std::begin(kOperators), std::end(kOperators), op) != std::end(kOperators);
}

// One node, whose operands are known.
class RepeatedNode {
 public:
  RepeatedNode(const OnnxNode& node, std::vector<std::optional<RepeatedConstant>> operands,
               ImportState* state)
      : node_(node), attributes_(node), operands_(std::move(operands)), state_(*state) {}

  std::optional<RepeatedConstant> Value() {
    if (node_.outputs.size() != 1 || operands_.empty() || !operands_[0]) return std::nullopt;
    if (node_.op == "CumSum") return Summed();
    if (IsElementwise(node_.op)) return Elementwise();
    std::optional<RepeatedConstant> arranged = Arranged();
    return attributes_.Finish().ok() ? arranged : std::nullopt;
  }

 private:
  using Dims = std::vector<int64_t>;

  std::optional<RepeatedConstant> Arranged() {
    const std::string& op = node_.op;
    if (op == "Identity") return operands_[0];
    if (op == "Expand") {
      const std::optional<Dims> shape = Ints(1);
      return shape ? ExpandRepeated(*operands_[0], *shape) : std::nullopt;
    }
    if (op == "ConstantOfShape") return Filled();
    if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape") return Reshaped();
    if (op == "Transpose") return Transposed();
    if (op == "Slice") return Sliced();
    if (op == "Concat") return Concatenated();
    const bool gathers = op == "GatherND" && attributes_.Int("batch_dims", 0) == 0;
    if (!gathers || operands_.size() != 2 || !operands_[1]) return std::nullopt;
    return GatherNDRepeated(*operands_[0], *operands_[1]);
  }

  // Operand `i` as a list of integers.
  std::optional<Dims> Ints(size_t i) const {
    if (i >= operands_.size() || !operands_[i]) return std::nullopt;
    const std::optional<OnnxTensor> tensor = WrittenOut(*operands_[i]);
    if (!tensor || tensor->is_float() || tensor->dims.size() > 1) return std::nullopt;
    return tensor->ints;
  }

  // `axis` of the first operand, from the front.
  std::optional<size_t> Axis(int64_t axis) const {
    const absl::StatusOr<int> from_front =
        NormalizeAxis(axis, static_cast<int>(operands_[0]->dims.size()));
    return from_front.ok() ? std::optional<size_t>(*from_front) : std::nullopt;
  }

  std::optional<RepeatedConstant> Filled() {
    const std::optional<Dims> shape = Ints(0);
    OnnxTensor zero;
    zero.floats = {0};
    OnnxTensor value = attributes_.Tensor("value", zero);
    if (!shape || value.size() != 1 || NumElementsOf(*shape) < 1) return std::nullopt;
    value.is_literal = true;
    value.dims.assign(shape->size(), 1);
    return RepeatedConstant{*shape, {std::move(value)}};
  }

  std::optional<RepeatedConstant> Reshaped() {
    absl::StatusOr<Dims> dims;
    if (node_.op == "Reshape") {
      const std::optional<Dims> shape = Ints(1);
      if (!shape) return std::nullopt;
      dims = ReshapedDims(operands_[0]->dims, *shape, attributes_.Int("allowzero", 0) == 1);
    } else {
      const std::optional<Dims> axes =
          operands_.size() > 1 && operands_[1] ? Ints(1) : attributes_.Ints("axes", {});
      if (!axes) return std::nullopt;
      dims = node_.op == "Squeeze" ? SqueezedDims(operands_[0]->dims, *axes)
                                   : UnsqueezedDims(operands_[0]->dims, *axes);
    }
    return dims.ok() ? ReshapeRepeated(*operands_[0], *dims) : std::nullopt;
  }

  std::optional<RepeatedConstant> Transposed() {
    const size_t rank = operands_[0]->dims.size();
    Dims backwards, sorted;
    for (size_t i = 0; i < rank; ++i) {
      backwards.insert(backwards.begin(), static_cast<int64_t>(i));
      sorted.push_back(static_cast<int64_t>(i));
    }
    const Dims perm = attributes_.Ints("perm", backwards);
    if (!std::is_permutation(perm.begin(), perm.end(), sorted.begin(), sorted.end())) {
      return std::nullopt;
    }
    return TransposeRepeated(*operands_[0], perm);
  }

  // Slice(data, starts, ends, axes?, steps?).
  std::optional<RepeatedConstant> Sliced() {
    const std::optional<Dims> starts = Ints(1), ends = Ints(2);
    if (!starts || !ends) return std::nullopt;
    Dims all;
    for (size_t i = 0; i < starts->size(); ++i) all.push_back(static_cast<int64_t>(i));
    const bool has_axes = operands_.size() > 3 && operands_[3];
    const bool has_steps = operands_.size() > 4 && operands_[4];
    const std::optional<Dims> axes = has_axes ? Ints(3) : all;
    const std::optional<Dims> steps = has_steps ? Ints(4) : Dims(starts->size(), 1);
    if (!axes || !steps || ends->size() != starts->size() || axes->size() != starts->size() ||
        steps->size() != starts->size()) {
      return std::nullopt;
    }
    std::optional<RepeatedConstant> x = operands_[0];
    for (size_t i = 0; x && i < starts->size(); ++i) {
      const std::optional<size_t> axis = Axis((*axes)[i]);
      if (!axis) return std::nullopt;
      x = SliceRepeated(*std::move(x), *axis, (*starts)[i], (*ends)[i], (*steps)[i]);
    }
    return x;
  }

  std::optional<RepeatedConstant> Concatenated() {
    const std::optional<size_t> axis = Axis(attributes_.Int("axis", 0));
    std::vector<RepeatedConstant> parts;
    for (const std::optional<RepeatedConstant>& operand : operands_) {
      if (!operand) return std::nullopt;
      parts.push_back(*operand);
    }
    return axis ? ConcatRepeated(std::move(parts), *axis) : std::nullopt;
  }

  // The operator is the same along what does not repeat, if that includes the axis.
  std::optional<RepeatedConstant> Summed() {
    const std::optional<OnnxTensor> at =
        operands_.size() == 2 && operands_[1] ? WrittenOut(*operands_[1]) : std::nullopt;
    if (!at || at->is_float() || at->size() != 1) return std::nullopt;
    const std::optional<size_t> axis = Axis(at->ints[0]);
    if (!axis) return std::nullopt;
    operands_[0] = WithoutRepeatsAlong(*std::move(operands_[0]), *axis);
    if (!operands_[0]) return std::nullopt;
    std::optional<OnnxTensor> sums = EvaluatedOnce();
    if (!sums || sums->dims != operands_[0]->parts[0].dims) return std::nullopt;
    return RepeatedConstant{operands_[0]->dims, {*std::move(sums)}};
  }

  std::optional<RepeatedConstant> Elementwise() {
    std::vector<Dims> all, once;
    for (std::optional<RepeatedConstant>& operand : operands_) {
      if (!operand) continue;
      operand = AsOnePart(*std::move(operand));
      if (!operand) return std::nullopt;
      all.push_back(operand->dims);
      once.push_back(operand->parts[0].dims);
    }
    std::optional<Dims> dims = BroadcastDims(all);
    if (!dims || IsLeftToTheGraph(*dims, once)) return std::nullopt;
    std::optional<OnnxTensor> value = EvaluatedOnce();
    if (!value || value->dims != BroadcastDims(once)) return std::nullopt;
    return RepeatedConstant{*std::move(dims), {*std::move(value)}};
  }

  // Comparisons of all pairs of positions: the graph has them as calls, and ConstantRuns knows them
  // without computing each.
  static bool IsLeftToTheGraph(const Dims& dims, const std::vector<Dims>& once) {
    int64_t held = 0;
    for (const Dims& operand : once) held += NumElementsOf(operand);
    const std::optional<Dims> result = BroadcastDims(once);
    return NumElementsOf(dims) > kMostComputedElements && result && NumElementsOf(*result) > held;
  }

  // The node's output of what its operands are once, each of one part.
  std::optional<OnnxTensor> EvaluatedOnce() {
    ImportState alone;
    alone.onnx.file = state_.onnx.file;
    alone.onnx.opset = state_.onnx.opset;
    alone.onnx.opsets = state_.onnx.opsets;
    alone.fold_budget = state_.fold_budget;
    alone.work_budget = state_.work_budget;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i]) alone.onnx.constants[node_.inputs[i]] = operands_[i]->parts[0];
    }
    const absl::Status status = ImportNode(node_, &alone);
    state_.fold_budget = alone.fold_budget;
    state_.work_budget = alone.work_budget;
    const auto found = alone.onnx.constants.find(node_.outputs[0]);
    if (!status.ok() || found == alone.onnx.constants.end()) return std::nullopt;
    return std::move(found->second);
  }

  const OnnxNode& node_;
  OnnxAttributes attributes_;
  std::vector<std::optional<RepeatedConstant>> operands_;
  ImportState& state_;
};

// Operands, nothing for those that are left out. Nothing if one is not known, or is to be trained.
std::optional<std::vector<std::optional<RepeatedConstant>>> OperandsOf(const OnnxNode& node,
                                                                       const ImportState& state) {
  std::vector<std::optional<RepeatedConstant>> operands;
  for (const std::string& input : node.inputs) {
    operands.emplace_back();
    if (input.empty()) continue;
    if (const auto found = state.repeated.find(input); found != state.repeated.end()) {
      operands.back() = found->second;
      continue;
    }
    const auto found = state.onnx.constants.find(input);
    if (found == state.onnx.constants.end()) return std::nullopt;
    const OnnxTensor& tensor = found->second;
    if (tensor.is_float() && !tensor.is_literal) return std::nullopt;
    operands.back() = RepeatedConstant::Of(tensor);
  }
  return operands;
}

}  // namespace

void WriteOut(const std::string& name, ImportState* state) {
  const auto found = state->repeated.find(name);
  if (found == state->repeated.end() || state->onnx.constants.contains(name)) return;
  if (std::optional<OnnxTensor> tensor = WrittenOut(found->second)) {
    state->onnx.constants[name] = *std::move(tensor);
  }
}

bool DefineSizesAlone(const OnnxNode& node, ImportState* state) {
  if (!IsElementwise(node.op) || node.outputs.size() != 1 ||
      !state->asked_for_sizes.contains(node.outputs[0])) {
    return false;
  }
  std::vector<std::vector<int64_t>> dims;
  for (const std::string& input : node.inputs) {
    const auto repeated = state->repeated.find(input);
    const auto constant = state->onnx.constants.find(input);
    if (repeated != state->repeated.end()) {
      dims.push_back(repeated->second.dims);
    } else if (constant != state->onnx.constants.end()) {
      dims.push_back(constant->second.dims);
    } else if (!input.empty()) {
      return false;
    }
  }
  std::optional<std::vector<int64_t>> sizes = BroadcastDims(dims);
  if (!sizes) return false;
  state->sizes[node.outputs[0]] = *std::move(sizes);
  return true;
}

bool EvaluateRepeated(const OnnxNode& node, ImportState* state) {
  const bool has_repeated =
      std::any_of(node.inputs.begin(), node.inputs.end(),
                  [&](const std::string& input) { return state->repeated.contains(input); });
  const bool repeats = node.op == "Expand" || node.op == "ConstantOfShape";
  if (!has_repeated && !repeats) return false;
  std::optional<std::vector<std::optional<RepeatedConstant>>> operands = OperandsOf(node, *state);
  if (!operands) return false;
  std::optional<RepeatedConstant> value = RepeatedNode(node, *std::move(operands), state).Value();
  if (!value) {
    // What is elementwise is computed on what is held once, or not at all.
    for (const std::string& input : node.inputs) {
      if (!IsElementwise(node.op)) WriteOut(input, state);
    }
    return false;
  }
  const int64_t elements = NumElementsOf(value->dims);
  if (elements < 1) return false;
  if (elements <= kFewElements) state->onnx.constants[node.outputs[0]] = *WrittenOut(*value);
  state->repeated[node.outputs[0]] = *std::move(value);
  return true;
}

}  // namespace isomer
