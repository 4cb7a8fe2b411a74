#include "models/onnx_import.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/fold.h"
#include "models/onnx/graph.h"
#include "models/onnx/leaves.h"
#include "models/onnx/node_importer.h"
#include "models/onnx/operators.h"
#include "models/onnx/patterns.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

bool IsKnown(const OnnxNode& node) {
  return node.domain.empty() &&
         (FindOnnxOperator(node.op) != nullptr || IsFoldable(node.op) || node.op == "Shape");
}

// All operators that are not known at once, each with the first node that has it.
absl::Status CheckOperators(const OnnxGraph& graph) {
  std::vector<std::string> unknown;
  std::set<std::pair<std::string, std::string>> seen;
  for (const OnnxNode& node : graph.nodes) {
    if (IsKnown(node) || !seen.insert({node.domain, node.op}).second) continue;
    const auto opset = graph.opsets.find(node.domain);
    unknown.push_back(absl::StrCat(
        node.domain.empty() ? "" : absl::StrCat(QuotedName(node.domain), " "), node.label,
        opset == graph.opsets.end() ? " of no opset" : absl::StrCat(" of opset ", opset->second)));
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("unknown operators, each at its first node: ", absl::StrJoin(unknown, "; ")));
}

// Shape(x): the sizes of x, from dim `start` to before dim `end`.
absl::StatusOr<OnnxTensor> FoldShape(const OnnxNode& node, ImportState* state) {
  if (node.inputs.size() != 1) return absl::InvalidArgumentError("it needs one input");
  OnnxAttributes attributes(node);
  std::vector<int64_t> sizes;
  const auto constant = state->onnx.constants.find(node.inputs[0]);
  if (constant != state->onnx.constants.end()) {
    sizes = constant->second.dims;
  } else {
    ISOMER_ASSIGN_OR_RETURN(const TensorRef x, TensorNamed(node.inputs[0], state));
    sizes = state->model.graph.type(x).Sizes();
  }
  const int64_t rank = static_cast<int64_t>(sizes.size());
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(attributes.Int("start", 0)), end = clamp(attributes.Int("end", rank));
  ISOMER_RETURN_IF_ERROR(attributes.Finish());
  OnnxTensor result;
  result.dtype = DataType::kInt64;
  result.is_literal = true;
  if (start < end) result.ints.assign(sizes.begin() + start, sizes.begin() + end);
  result.dims = {result.size()};
  return result;
}

// The value of a node that is known before anything runs, if it is.
absl::StatusOr<std::optional<OnnxTensor>> ConstantValue(const OnnxNode& node, ImportState* state) {
  if (node.op == "Shape") return FoldShape(node, state);
  std::vector<const OnnxTensor*> operands;
  for (const std::string& input : node.inputs) {
    const auto found = state->onnx.constants.find(input);
    if (found == state->onnx.constants.end() && !input.empty()) return std::nullopt;
    operands.push_back(input.empty() ? nullptr : &found->second);
  }
  return FoldNode(node, operands);
}

absl::Status ImportNode(const OnnxNode& node, ImportState* state) {
  ISOMER_ASSIGN_OR_RETURN(std::optional<OnnxTensor> value, ConstantValue(node, state));
  if (value) {
    state->onnx.constants[node.outputs[0]] = *std::move(value);
    return absl::OkStatus();
  }
  const OnnxOperator* const op = FindOnnxOperator(node.op);
  if (op == nullptr) {
    return absl::UnimplementedError("it is read only where its inputs are integer constants");
  }
  const int num_inputs = static_cast<int>(node.inputs.size());
  if (num_inputs < op->min_inputs || num_inputs > op->max_inputs) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", num_inputs, " inputs, not ",
                                                   op->min_inputs, " to ", op->max_inputs));
  }
  for (size_t i = op->max_outputs; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    return absl::UnimplementedError(
        absl::StrCat("its output ", i, " ", QuotedName(node.outputs[i]), " is not computed"));
  }
  NodeImporter importer(node, state);
  op->import(importer);
  return importer.Finish();
}

absl::Status ImportNodes(ImportState* state) {
  for (const OnnxLeaves::Leaf& leaf : state->leaves.data) {
    state->tensors[leaf.name] = state->model.graph.AddInput(leaf.name, leaf.type);
  }
  const std::vector<bool> live = LiveNodes(state->onnx);
  for (size_t n = 0; n < live.size(); ++n) {
    const OnnxNode& node = state->onnx.nodes[n];
    if (!live[n]) continue;
    if (absl::Status status = ImportNode(node, state); !status.ok()) {
      return InFile(node.label, status);
    }
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(ImportState* state) {
  for (const onnx::ValueInfoProto& output : state->onnx.outputs) {
    ISOMER_ASSIGN_OR_RETURN(const TensorRef tensor, TensorNamed(output.name(), state));
    ISOMER_RETURN_IF_ERROR(
        CheckDeclaredType(output, state->model.graph.type(tensor), state->leaves));
    state->model.graph.AddOutput(output.name(), tensor);
  }
  return state->model.graph.Validate();
}

// What the user should know although the import succeeded.
void AddNotes(ImportState* state) {
  const OnnxLeaves& leaves = state->leaves;
  if (leaves.replaced_batch != 0) {
    state->notes.push_back(absl::StrCat(state->onnx.file, ": the batch is ", leaves.batch,
                                        " instead of the ", leaves.replaced_batch, " of the file"));
  }
  for (int id = 0; id < state->model.graph.num_nodes(); ++id) {
    if (state->model.graph.node(id).op.kind() != OpKind::kBatchNorm) continue;
    state->notes.push_back(absl::StrCat(state->onnx.file,
                                        ": the statistics of BatchNormalization are weights, and "
                                        "training would move them by their gradients"));
    break;
  }
}

// The last part of the path, without .onnx.
std::string ModelName(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (absl::EndsWith(name, ".onnx")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

absl::StatusOr<Model> ParseOnnx(absl::string_view contents, const std::string& name,
                                const ImportOptions& options) {
  ImportState state;
  ISOMER_ASSIGN_OR_RETURN(state.onnx, ReadOnnxGraph(contents, name));
  if (absl::Status status = CheckOperators(state.onnx); !status.ok()) return InFile(name, status);
  RecognizePatterns(&state.onnx);
  ISOMER_ASSIGN_OR_RETURN(state.leaves, ReadLeaves(state.onnx, options.batch_size));
  state.model.name = ModelName(name);
  if (absl::Status status = ImportNodes(&state); !status.ok()) return InFile(name, status);
  if (absl::Status status = AddOutputs(&state); !status.ok()) return InFile(name, status);
  AddNotes(&state);
  if (options.notes != nullptr) {
    options.notes->insert(options.notes->end(), state.notes.begin(), state.notes.end());
  }
  return std::move(state.model);
}

absl::StatusOr<Model> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseOnnx(contents, path, options);
}

}  // namespace isomer
