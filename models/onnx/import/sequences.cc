#include "models/onnx/import/sequences.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/attributes.h"
#include "models/onnx/graph/subgraph.h"
#include "models/onnx/import/formulas.h"
#include "models/onnx/import/import_nodes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using Names = std::vector<std::string>;

absl::StatusOr<const Names*> SequenceNamed(const std::string& name, const ImportState& state) {
  const auto found = state.sequences.find(name);
  if (found != state.sequences.end()) return &found->second;
  return absl::UnimplementedError(
      absl::StrCat("the sequence ", QuotedName(name), " is not one that the file makes"));
}

// The constant position that input `i` holds, counted from the front; `end` where it is left out.
absl::StatusOr<int64_t> Position(const OnnxNode& node, size_t i, int64_t count, int64_t end,
                                 const ImportState& state) {
  if (i >= node.inputs.size() || node.inputs[i].empty()) return end;
  const auto found = state.onnx.constants.find(node.inputs[i]);
  if (found == state.onnx.constants.end() || found->second.size() != 1 ||
      !IsInteger(found->second.dtype)) {
    return absl::UnimplementedError("its position is computed from data");
  }
  const int64_t stated = found->second.ints[0], position = stated < 0 ? stated + count : stated;
  if (position >= 0 && position <= end) return position;
  return absl::InvalidArgumentError(
      absl::StrCat("its position ", stated, " is none in a sequence of ", count));
}

// Without sizes the parts are of one slice each, without the dim where keepdims is 0; a scalar is
// the size of all parts but the last.
absl::Status ImportSplitToSequence(const OnnxNode& of, ImportState* state) {
  NodeImporter node(of, state);
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  const bool keeps_dim = node.attributes.Int("keepdims", 1) != 0 || node.HasInput(1);
  std::vector<int64_t> sizes = node.HasInput(1) ? node.ConstantInts(1) : std::vector<int64_t>{1};
  if (!node.ok() || sizes.empty()) return node.Finish();
  const int64_t size = node.Sizes(x)[axis];
  if (!node.HasInput(1) || node.Constant(1)->dims.empty()) {
    const int64_t each = sizes[0];
    constexpr int64_t kMostParts = 1 << 16;
    if (!node.Expect(each >= 1 && size / each <= kMostParts, "parts of size ", each, " of dim ",
                     axis, " of size ", size)) {
      return node.Finish();
    }
    sizes.assign(size / each, each);
    if (size % each != 0) sizes.push_back(size % each);
  }
  std::vector<TensorRef> parts = {x};
  if (sizes.size() != 1 || sizes[0] != size) parts = SplitInto(node, x, axis, sizes);
  if (!node.ok()) return node.Finish();
  if (!keeps_dim) {
    std::vector<int64_t> dims = node.Sizes(x);
    dims.erase(dims.begin() + axis);
    for (TensorRef& part : parts) part = node.Reshape(part, dims);
  }
  ISOMER_RETURN_IF_ERROR(node.Finish());
  const std::string prefix = UnusedPrefix(of.outputs[0], {&state->onnx.names});
  Names& names = state->sequences[of.outputs[0]];
  for (TensorRef part : parts) {
    names.push_back(absl::StrCat(prefix, names.size()));
    state->tensors[names.back()] = part;
  }
  state->onnx.names.insert(names.begin(), names.end());
  return absl::OkStatus();
}

absl::Status DefineLength(const OnnxNode& node, int64_t length, ImportState* state) {
  OnnxTensor& tensor = state->onnx.constants[node.outputs[0]];
  tensor.dtype = DataType::kInt64;
  tensor.ints = {length};
  tensor.is_literal = true;
  return absl::OkStatus();
}

// Sequences are copied as the standard's operators say; a file can ask for many of many.
absl::Status DefineSequence(const OnnxNode& node, Names names, ImportState* state) {
  constexpr int64_t kBytesPerName = 64;
  for (const std::string& name : names) {
    if (!name.empty() && state->sequences.count(name) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("its element ", QuotedName(name), " is no tensor"));
  }
  state->unrolled_bytes_left -= kBytesPerName * static_cast<int64_t>(names.size());
  if (state->unrolled_bytes_left < 0) {
    return absl::UnimplementedError("the file's sequences are too large");
  }
  state->sequences[node.outputs[0]] = std::move(names);
  return absl::OkStatus();
}

}  // namespace

bool IsSequenceOperator(absl::string_view op) {
  for (absl::string_view known :
       {"ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
        "SequenceInsert", "SequenceLength", "SplitToSequence"}) {
    if (op == known) return true;
  }
  return false;
}

absl::Status ImportConcatenation(const OnnxNode& node, const Names& parts, int64_t axis,
                                 bool stacks, const std::string& output, ImportState* state) {
  if (parts.empty()) return absl::UnimplementedError("a sequence of no tensors has no value");
  OnnxNode concat;
  concat.op = "Concat";
  concat.label = node.label;
  concat.module = node.module;
  concat.is_named_by_module = node.is_named_by_module;
  concat.outputs = {output};
  concat.inputs = parts;
  SetInt("axis", axis, &concat);
  if (stacks) {
    const std::string prefix = UnusedPrefix(output, {&state->onnx.names});
    OnnxTensor axes;
    axes.dtype = DataType::kInt64;
    axes.dims = {1};
    axes.ints = {axis};
    axes.is_literal = true;
    const std::string axes_name = absl::StrCat(prefix, "axes");
    state->onnx.names.insert(axes_name);
    state->onnx.constants[axes_name] = std::move(axes);
    constexpr int64_t kAxesAreAnInput = 13;  // opset
    for (size_t i = 0; i < parts.size(); ++i) {
      OnnxNode unsqueeze;
      unsqueeze.op = "Unsqueeze";
      unsqueeze.label = node.label;
      unsqueeze.module = node.module;
      unsqueeze.is_named_by_module = node.is_named_by_module;
      unsqueeze.opset = kAxesAreAnInput;
      unsqueeze.inputs = {parts[i], axes_name};
      unsqueeze.outputs = {absl::StrCat(prefix, i)};
      state->onnx.names.insert(unsqueeze.outputs[0]);
      ISOMER_RETURN_IF_ERROR(ImportNode(unsqueeze, state));
      concat.inputs[i] = unsqueeze.outputs[0];
    }
  }
  return ImportNode(concat, state);
}

absl::Status ImportSequenceOperator(const OnnxNode& node, ImportState* state) {
  if (node.op == "SplitToSequence") return ImportSplitToSequence(node, state);
  if (node.op == "SequenceEmpty") return DefineSequence(node, {}, state);
  if (node.op == "SequenceConstruct") return DefineSequence(node, node.inputs, state);
  if (node.inputs.empty()) return absl::InvalidArgumentError("input 0 is missing");
  ISOMER_ASSIGN_OR_RETURN(const Names* const sequence, SequenceNamed(node.inputs[0], *state));
  const int64_t count = static_cast<int64_t>(sequence->size());
  if (node.op == "SequenceLength") return DefineLength(node, count, state);
  if (node.op == "SequenceAt") {
    ISOMER_ASSIGN_OR_RETURN(const int64_t at, Position(node, 1, count, count - 1, *state));
    if (at < 0) return absl::InvalidArgumentError("its sequence is empty");
    return DefineAlias(node.outputs[0], (*sequence)[at], state);
  }
  Names changed = *sequence;
  if (node.op == "SequenceErase") {
    ISOMER_ASSIGN_OR_RETURN(const int64_t at, Position(node, 1, count, count - 1, *state));
    if (at < 0) return absl::InvalidArgumentError("its sequence is empty");
    changed.erase(changed.begin() + at);
    return DefineSequence(node, std::move(changed), state);
  }
  if (node.op == "SequenceInsert") {
    if (node.inputs.size() < 2) return absl::InvalidArgumentError("input 1 is missing");
    ISOMER_ASSIGN_OR_RETURN(const int64_t at, Position(node, 2, count, count, *state));
    changed.insert(changed.begin() + at, node.inputs[1]);
    return DefineSequence(node, std::move(changed), state);
  }
  OnnxAttributes attributes(node);
  const int64_t axis = attributes.Int("axis", 0);
  const bool stacks = attributes.Int("new_axis", 0) != 0;
  ISOMER_RETURN_IF_ERROR(attributes.Finish());
  return ImportConcatenation(node, changed, axis, stacks, node.outputs[0], state);
}

}  // namespace isomer
