#include "models/onnx/import/onnx_import.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/graph/attention_reading.h"
#include "models/onnx/graph/batched_iterations.h"
#include "models/onnx/graph/broadcast_constants.h"
#include "models/onnx/graph/equal_nodes.h"
#include "models/onnx/graph/exporter_notes.h"
#include "models/onnx/graph/graph.h"
#include "models/onnx/graph/patterns.h"
#include "models/onnx/graph/provenance.h"
#include "models/onnx/graph/shared_parameters.h"
#include "models/onnx/import/import_nodes.h"
#include "models/onnx/import/leaves.h"
#include "models/onnx/import/narrow_integers.h"
#include "models/onnx/import/node_importer.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

// All operators that are not known at once, each with the first node that has it.
absl::Status CheckOperators(const OnnxGraph& graph) {
  std::vector<std::string> unknown;
  std::set<std::pair<std::string, std::string>> seen;
  for (const OnnxNode& node : graph.nodes) {
    if (IsKnownOperator(graph, node) || !seen.insert({node.domain, node.op}).second) continue;
    unknown.push_back(absl::StrCat(node.label, " of ", QuotedName(DomainName(node)), ", opset ",
                                   OpsetText(graph, node)));
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("unknown operators, each at its first node: ", absl::StrJoin(unknown, "; "),
                   " (--list_unsupported lists all; --operators declares further ones)"));
}

// Inputs whose values are given become constants.
absl::Status BindInputs(const ImportOptions& options, OnnxGraph* graph) {
  if (options.input_values == nullptr) return absl::OkStatus();
  std::vector<onnx::ValueInfoProto> open;
  for (onnx::ValueInfoProto& input : graph->inputs) {
    const auto value = options.input_values->find(input.name());
    if (value == options.input_values->end()) {
      open.push_back(std::move(input));
      continue;
    }
    if (IsNarrowInteger(input.type().tensor_type().elem_type())) {
      const absl::Status only_cast = CheckOnlyCast(*graph, input);
      if (!only_cast.ok()) {
        return absl::Status(only_cast.code(), absl::StrCat("input ", QuotedName(input.name()), ": ",
                                                           only_cast.message()));
      }
    }
    ISOMER_ASSIGN_OR_RETURN(
        const DataType declared,
        OnnxDataType(input.type().tensor_type().elem_type(), NarrowIntegers::kAsInt32));
    if (declared != value->second.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("input ", QuotedName(input.name()), " is ",
                                                     DataTypeName(declared), ", but its value ",
                                                     DataTypeName(value->second.dtype)));
    }
    OnnxTensor& constant = graph->constants[input.name()] = value->second;
    constant.is_literal = true;
  }
  graph->inputs = std::move(open);
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
  if (!state->batch_fixed_by.empty() && leaves.replaced_batch == 0) {
    state->notes.push_back(absl::StrCat(
        state->onnx.file, ": its batch is ", leaves.batch, ", dim 0 of input ",
        QuotedName(leaves.data[0].name), ", and stays so, as ", state->batch_fixed_by,
        ", states it; for another, export it with that batch, or with a name for that dim "
        "(dynamic_shapes, dynamic_axes)"));
  }
  if (state->onnx.has_double) {
    state->notes.push_back(
        absl::StrCat(state->onnx.file, ": it has DOUBLE tensors, which are read as FLOAT"));
  }
}

// The last part of the path, without .onnx.
std::string ModelName(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (absl::EndsWith(name, ".onnx")) name.resize(name.size() - 5);
  return name;
}

absl::StatusOr<ImportState> StateBeforeNodes(absl::string_view contents, const std::string& name,
                                             const ImportOptions& options,
                                             std::vector<std::string>* assumed = nullptr) {
  ImportState state;
  ISOMER_ASSIGN_OR_RETURN(state.onnx, ReadOnnxGraph(contents, name, options.leave_data));
  if (absl::Status status = BindInputs(options, &state.onnx); !status.ok()) {
    return InFile(name, status);
  }
  // Sizes that are made up are for looking at unknown operators, among other things.
  if (assumed == nullptr) {
    if (absl::Status status = CheckOperators(state.onnx); !status.ok()) return InFile(name, status);
  }
  std::vector<std::string> notes;
  RestoreTiedParameters(&state.onnx, &notes);
  MarkLiterals(&state.onnx);
  RestoreSharedParameters(&state.onnx, &notes);
  NoteComputedParameters(state.onnx, &notes);
  SeparateMergedParameters(&state.onnx, &notes);
  RestoreDroppedBiases(&state.onnx, &notes);
  NoteFoldedParameters(state.onnx, &notes);
  NoteDetached(state.onnx, &notes);
  MergeEqualNodes(&state.onnx);
  for (const std::string& note : notes) state.notes.push_back(absl::StrCat(name, ": ", note));
  RecognizePatterns(&state.onnx);
  ISOMER_ASSIGN_OR_RETURN(state.leaves, ReadLeaves(state.onnx, options, assumed));
  state.untrained = RunningStatistics(state.onnx);
  state.model.name = ModelName(name);
  for (const OnnxLeaves::Leaf& leaf : state.leaves.data) {
    state.tensors[leaf.name] = state.model.graph.AddInput(leaf.name, leaf.type);
  }
  return state;
}

}  // namespace

absl::StatusOr<Model> ParseOnnx(absl::string_view contents, const std::string& name,
                                const ImportOptions& options) {
  ISOMER_ASSIGN_OR_RETURN(ImportState state, StateBeforeNodes(contents, name, options));
  if (absl::Status status = ImportNodes(&state); !status.ok()) return InFile(name, status);
  if (absl::Status status = AddOutputs(&state); !status.ok()) return InFile(name, status);
  if (!state.repeated.empty()) BroadcastConstants(&state.model);
  BatchIterations(&state.model);
  ReadAttention(&state.model);
  for (const std::string& assumption : state.model.assumptions) {
    state.notes.push_back(absl::StrCat(name, ": assumption: ", assumption));
  }
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

absl::StatusOr<std::vector<std::string>> ListUnsupported(absl::string_view contents,
                                                         const std::string& name,
                                                         const ImportOptions& options) {
  std::vector<std::string> assumed;
  ISOMER_ASSIGN_OR_RETURN(ImportState state, StateBeforeNodes(contents, name, options, &assumed));
  std::vector<RefusedNode> refused;
  ISOMER_RETURN_IF_ERROR(ImportNodes(&state, &refused));
  if (options.notes != nullptr) {
    options.notes->insert(options.notes->end(), assumed.begin(), assumed.end());
  }
  // By operator and reason, in the order of their first nodes.
  std::vector<std::pair<const RefusedNode*, int>> kinds;
  for (const RefusedNode& node : refused) {
    auto same = kinds.begin();
    while (same != kinds.end() &&
           (same->first->node.op != node.node.op || same->first->node.domain != node.node.domain ||
            same->first->reason != node.reason)) {
      ++same;
    }
    if (same == kinds.end()) same = kinds.insert(kinds.end(), {&node, 0});
    ++same->second;
  }
  std::vector<std::string> lines;
  for (const auto& [first, count] : kinds) {
    lines.push_back(absl::StrCat(first->node.op, " (domain ", DomainName(first->node), ", opset ",
                                 first->opset, "): ", count,
                                 count == 1 ? " node, " : " nodes, first ", first->node.label, ": ",
                                 first->reason));
  }
  return lines;
}

}  // namespace isomer
