#include "models/onnx/import/control_flow.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/attributes.h"
#include "models/onnx/graph/patterns.h"
#include "models/onnx/graph/provenance.h"
#include "models/onnx/graph/subgraph.h"
#include "models/onnx/import/sequences.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using Names = std::vector<std::string>;
using Refused = std::vector<RefusedNode>*;

// What messages and names of inner tensors call the node.
const std::string& FirstOutput(const OnnxNode& node) {
  return *std::find_if(node.outputs.begin(), node.outputs.end(),
                       [](const std::string& name) { return !name.empty(); });
}

absl::StatusOr<const onnx::GraphProto*> GraphAttribute(const OnnxNode& node,
                                                       const std::string& name) {
  const auto found = node.attributes.find(name);
  if (found != node.attributes.end() && found->second.has_g()) return &found->second.g();
  return absl::InvalidArgumentError(absl::StrCat("it lacks the graph ", QuotedName(name)));
}

// The one number that a constant holds.
absl::StatusOr<double> KnownNumber(const std::string& name, absl::string_view what,
                                   absl::string_view op, const ImportState& state) {
  const auto found = state.onnx.constants.find(name);
  if (found == state.onnx.constants.end()) {
    return absl::UnimplementedError(
        absl::StrCat(what, " is computed from data; ", op, " is read where it is known at import"));
  }
  if (found->second.size() == 1) return found->second.Number(0);
  return absl::InvalidArgumentError(absl::StrCat(what, " is not one value"));
}

// Parameters that only appear in this graph, and what is none.
void AddLeaves(OnnxGraph* graph, ImportState* state) {
  std::vector<std::string> notes;
  MarkLiterals(graph);
  NoteComputedParameters(*graph, &notes);
  for (const std::string& note : notes) {
    state->notes.push_back(absl::StrCat(graph->file, ": ", note));
  }
  state->untrained.merge(RunningStatistics(*graph));
  state->onnx.names.insert(graph->names.begin(), graph->names.end());
  state->onnx.constants.merge(graph->constants);
}

// Imports the nodes of `graph`, which has no inputs, as a part of the graph around it. Returns the
// names of its outputs, which are defined then, unless nodes were refused.
absl::StatusOr<Names> ImportInner(absl::StatusOr<OnnxGraph> read, ImportState* state,
                                  Refused refused) {
  ISOMER_RETURN_IF_ERROR(read.status());
  OnnxGraph& graph = *read;
  if (!graph.inputs.empty()) return absl::InvalidArgumentError("its graph has inputs");
  RecognizePatterns(&graph);
  AddLeaves(&graph, state);
  Names outputs;
  for (const onnx::ValueInfoProto& output : graph.outputs) outputs.push_back(output.name());
  auto exchange = [&] {
    std::swap(state->onnx.nodes, graph.nodes);
    std::swap(state->onnx.producers, graph.producers);
    std::swap(state->onnx.outputs, graph.outputs);
    std::swap(state->onnx.depth, graph.depth);
  };
  exchange();
  const absl::Status status = ImportNodes(state, refused);
  exchange();
  ISOMER_RETURN_IF_ERROR(status);
  return outputs;
}

absl::Status DefineOutputs(const OnnxNode& node, const Names& values, ImportState* state,
                           Refused refused) {
  for (size_t i = 0; i < node.outputs.size() && i < values.size(); ++i) {
    const bool was_refused = refused != nullptr && !IsDefined(values[i], *state);
    if (node.outputs[i].empty() || was_refused) continue;
    ISOMER_RETURN_IF_ERROR(DefineAlias(node.outputs[i], values[i], state));
  }
  return absl::OkStatus();
}

absl::Status ImportIf(const OnnxNode& node, ImportState* state, Refused refused) {
  if (node.inputs.size() != 1) return absl::InvalidArgumentError("it has no condition");
  ISOMER_ASSIGN_OR_RETURN(const double condition,
                          KnownNumber(node.inputs[0], "its condition", node.op, *state));
  ISOMER_ASSIGN_OR_RETURN(const onnx::GraphProto* const branch,
                          GraphAttribute(node, condition != 0 ? "then_branch" : "else_branch"));
  if (branch->output_size() != static_cast<int>(node.outputs.size())) {
    return absl::InvalidArgumentError(absl::StrCat("its branch has ", branch->output_size(),
                                                   " outputs, the node ", node.outputs.size()));
  }
  ISOMER_ASSIGN_OR_RETURN(
      const Names values,
      ImportInner(ReadOnnxSubgraph(state->onnx, node, *branch), state, refused));
  return DefineOutputs(node, values, state, refused);
}

// The body of a Loop or Scan, imported once for each iteration.
class Body {
 public:
  Body(const OnnxNode& node, const onnx::GraphProto& proto, ImportState* state, Refused refused)
      : node_(node), proto_(proto), state_(state), refused_(refused) {}

  int64_t iterations() const { return iterations_; }

  // The outputs of one iteration more, its inputs being `operands`.
  absl::StatusOr<Names> Iterate(const Names& operands) {
    ISOMER_RETURN_IF_ERROR(Charge());
    const std::string scope = absl::StrCat(FirstOutput(node_), "/", iterations_);
    const std::string prefix = UnusedPrefix(scope, {&state_->onnx.names});
    if (iterations_ == 0) ISOMER_RETURN_IF_ERROR(Prepare(prefix));
    onnx::GraphProto proto = proto_;
    proto.clear_input();
    Renaming actual;
    for (int i = 0; i < proto_.input_size(); ++i) actual[proto_.input(i).name()] = operands[i];
    RenameDefined(prefix, computed_, &proto);
    RenameAll(actual, &proto);
    std::vector<RefusedNode> refused;
    absl::StatusOr<Names> outputs =
        ImportInner(ReadOnnxSubgraph(state_->onnx, node_, std::move(proto)), state_,
                    refused_ == nullptr ? nullptr : &refused);
    if (!outputs.ok()) return InIteration(outputs.status());
    // What is refused in the first iteration is so in others.
    if (iterations_ == 0 && refused_ != nullptr) {
      refused_->insert(refused_->end(), refused.begin(), refused.end());
    }
    if (iterations_++ == 0) proto_.clear_initializer();
    return outputs;
  }

  absl::Status InIteration(const absl::Status& status) const {
    return absl::Status(status.code(),
                        absl::StrCat("iteration ", iterations_ + 1, ": ", status.message()));
  }

 private:
  // A file of a few bytes can ask for any number of iterations.
  absl::Status Charge() {
    constexpr int64_t kBytesPerIteration = 4096, kBytesPerNode = 512;
    state_->unrolled_bytes_left -= kBytesPerIteration +
                                   static_cast<int64_t>(proto_.ByteSizeLong()) +
                                   kBytesPerNode * proto_.node_size();
    if (state_->unrolled_bytes_left >= 0) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "it is too large to be unrolled: all iterations before number ", iterations_ + 1,
        ", and those of other loops, make a graph of a quarter "
        "of a gigabyte"));
  }

  // Each iteration has names of its own for what it computes. An initializer of the body is one
  // tensor, whatever the number of iterations; one that has the name of an input would be its
  // default, which no operand leaves in place.
  absl::Status Prepare(const std::string& prefix) {
    std::set<std::string> inputs;
    for (const onnx::ValueInfoProto& input : proto_.input()) {
      if (inputs.insert(input.name()).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("its body has the input ", QuotedName(input.name()), " twice"));
    }
    for (const onnx::NodeProto& node : proto_.node()) {
      for (const std::string& output : node.output()) {
        if (inputs.count(output) > 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("its body defines its input ", QuotedName(output)));
        }
        computed_.insert(output);
      }
    }
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    Renaming renaming;
    for (onnx::TensorProto& initializer : *proto_.mutable_initializer()) {
      const std::string name = initializer.name();
      if (inputs.count(name) > 0) continue;
      if (state_->onnx.names.count(name) > 0) renaming[name] = absl::StrCat(prefix, name);
      *kept.Add() = std::move(initializer);
    }
    proto_.mutable_initializer()->Swap(&kept);
    RenameAll(renaming, &proto_);
    return absl::OkStatus();
  }

  const OnnxNode& node_;
  onnx::GraphProto proto_;
  ImportState* const state_;
  const Refused refused_;
  std::set<std::string> computed_;
  int64_t iterations_ = 0;
};

std::string DefineLiteral(const std::string& prefix, DataType dtype, int64_t value,
                          ImportState* state) {
  const std::string name = absl::StrCat(prefix, DataTypeName(dtype), "_", value);
  OnnxTensor& tensor = state->onnx.constants[name];
  tensor.dtype = dtype;
  tensor.ints = {value};
  tensor.is_literal = true;
  state->onnx.names.insert(name);
  return name;
}

absl::Status Stack(const OnnxNode& node, size_t output, const Names& parts, int64_t axis,
                   ImportState* state, Refused refused) {
  if (output >= node.outputs.size() || node.outputs[output].empty()) return absl::OkStatus();
  for (const std::string& part : parts) {
    if (refused != nullptr && !IsDefined(part, *state)) return absl::OkStatus();
  }
  if (parts.empty()) {
    return absl::UnimplementedError(absl::StrCat("its output ", output, " ",
                                                 QuotedName(node.outputs[output]),
                                                 " is empty: it has no iteration"));
  }
  return ImportConcatenation(node, parts, axis, /*stacks=*/true, node.outputs[output], state);
}

// Loop(trip count, condition, carried ..): both may be left out. The body takes the number of the
// iteration, the condition and what is carried; it returns whether another iteration follows, what
// is carried on, and elements of outputs that are stacked.
absl::Status ImportLoop(const OnnxNode& node, ImportState* state, Refused refused) {
  ISOMER_ASSIGN_OR_RETURN(const onnx::GraphProto* const proto, GraphAttribute(node, "body"));
  if (node.inputs.size() < 2) return absl::InvalidArgumentError("it has no trip count");
  Names carried(node.inputs.begin() + 2, node.inputs.end());
  const size_t num_carried = carried.size();
  const int64_t stacked = proto->output_size() - 1 - static_cast<int64_t>(num_carried);
  if (proto->input_size() != static_cast<int>(num_carried) + 2 || stacked < 0 ||
      node.outputs.size() > num_carried + stacked) {
    return absl::InvalidArgumentError(
        absl::StrCat("it carries ", num_carried, " values and has ", node.outputs.size(),
                     " outputs, but its body has ", proto->input_size(), " inputs and ",
                     proto->output_size(), " outputs"));
  }
  double trips = 0x1p62;
  if (!node.inputs[0].empty()) {
    ISOMER_ASSIGN_OR_RETURN(trips, KnownNumber(node.inputs[0], "its trip count", node.op, *state));
  }
  bool goes_on = true;
  if (!node.inputs[1].empty()) {
    ISOMER_ASSIGN_OR_RETURN(const double first,
                            KnownNumber(node.inputs[1], "its condition", node.op, *state));
    goes_on = first != 0;
  }
  const std::string prefix = UnusedPrefix(FirstOutput(node), {&state->onnx.names});
  const std::string holds = DefineLiteral(prefix, DataType::kBool, 1, state);
  std::vector<Names> elements(stacked);
  Body body(node, *proto, state, refused);
  while (goes_on && static_cast<double>(body.iterations()) < trips) {
    Names operands = {DefineLiteral(prefix, DataType::kInt64, body.iterations(), state), holds};
    operands.insert(operands.end(), carried.begin(), carried.end());
    ISOMER_ASSIGN_OR_RETURN(const Names values, body.Iterate(operands));
    carried.assign(values.begin() + 1, values.begin() + 1 + static_cast<int64_t>(num_carried));
    for (int64_t i = 0; i < stacked; ++i) elements[i].push_back(values[1 + num_carried + i]);
    if (refused != nullptr && !IsDefined(values[0], *state)) break;
    const absl::StatusOr<double> next = KnownNumber(
        values[0], absl::StrCat("whether an iteration follows on number ", body.iterations()),
        node.op, *state);
    ISOMER_RETURN_IF_ERROR(next.status());
    goes_on = *next != 0;
  }
  for (int64_t i = 0; i < stacked; ++i) {
    ISOMER_RETURN_IF_ERROR(Stack(node, num_carried + i, elements[i], /*axis=*/0, state, refused));
  }
  return DefineOutputs(node, carried, state, refused);
}

// Attribute `name` of Scan: one number for each of `count` inputs or outputs, 0 where it is absent.
absl::StatusOr<std::vector<int64_t>> OnePerTensor(OnnxAttributes* attributes,
                                                  const std::string& name, size_t count) {
  std::vector<int64_t> values = attributes->Ints(name, std::vector<int64_t>(count, 0));
  if (values.size() == count) return values;
  return absl::InvalidArgumentError(absl::StrCat("its attribute ", QuotedName(name), " has ",
                                                 values.size(), " values, not ", count));
}

absl::StatusOr<std::string> ImportSlice(const OnnxNode& node, const std::string& of, int64_t axis,
                                        const std::string& position, const std::string& name,
                                        ImportState* state) {
  OnnxNode gather;
  gather.op = "Gather";
  gather.label = node.label;
  gather.module = node.module;
  gather.is_named_by_module = node.is_named_by_module;
  gather.inputs = {of, position};
  gather.outputs = {name};
  SetInt("axis", axis, &gather);
  state->onnx.names.insert(name);
  ISOMER_RETURN_IF_ERROR(ImportNode(gather, state));
  return name;
}

// Scan(carried .., scanned ..), from opset 9 on: the body takes what is carried and a slice of each
// scanned tensor; it returns what is carried on, and slices of outputs.
absl::Status ImportScan(const OnnxNode& node, ImportState* state, Refused refused) {
  constexpr int64_t kWithoutBatch = 9;
  if (state->onnx.OpsetOf(node) < kWithoutBatch) {
    return absl::UnimplementedError("Scan of opset 8, over a batch, is not read");
  }
  ISOMER_ASSIGN_OR_RETURN(const onnx::GraphProto* const proto, GraphAttribute(node, "body"));
  OnnxAttributes attributes(node);
  const int64_t num_scanned = attributes.Int("num_scan_inputs", 0);
  const int64_t num_carried = static_cast<int64_t>(node.inputs.size()) - num_scanned;
  const int64_t num_stacked = proto->output_size() - num_carried;
  if (num_scanned < 1 || num_carried < 0 || num_stacked < 0 ||
      proto->input_size() != static_cast<int>(node.inputs.size()) ||
      static_cast<int>(node.outputs.size()) > proto->output_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", node.inputs.size(), " inputs, of which ", num_scanned,
                     " are scanned, and ", node.outputs.size(), " outputs, but its body has ",
                     proto->input_size(), " inputs and ", proto->output_size(), " outputs"));
  }
  ISOMER_ASSIGN_OR_RETURN(std::vector<int64_t> axes,
                          OnePerTensor(&attributes, "scan_input_axes", num_scanned));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> backwards,
                          OnePerTensor(&attributes, "scan_input_directions", num_scanned));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> stack_axes,
                          OnePerTensor(&attributes, "scan_output_axes", num_stacked));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> prepends,
                          OnePerTensor(&attributes, "scan_output_directions", num_stacked));
  ISOMER_RETURN_IF_ERROR(attributes.status());
  Names carried(node.inputs.begin(), node.inputs.begin() + num_carried);
  const Names scanned(node.inputs.begin() + num_carried, node.inputs.end());
  int64_t length = -1;
  for (int64_t i = 0; i < num_scanned; ++i) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(scanned[i], state));
    ISOMER_ASSIGN_OR_RETURN(axes[i], NormalizeAxis(axes[i], static_cast<int>(sizes.size())));
    if (length >= 0 && sizes[axes[i]] != length) {
      return absl::InvalidArgumentError(
          absl::StrCat("it scans dims of sizes ", length, " and ", sizes[axes[i]]));
    }
    length = sizes[axes[i]];
  }
  const std::string prefix = UnusedPrefix(FirstOutput(node), {&state->onnx.names});
  std::vector<Names> elements(num_stacked);
  Body body(node, *proto, state, refused);
  for (int64_t t = 0; t < length; ++t) {
    Names operands = carried;
    for (int64_t i = 0; i < num_scanned; ++i) {
      const std::string position =
          DefineLiteral(prefix, DataType::kInt64, backwards[i] != 0 ? length - 1 - t : t, state);
      ISOMER_ASSIGN_OR_RETURN(operands.emplace_back(),
                              ImportSlice(node, scanned[i], axes[i], position,
                                          absl::StrCat(prefix, "slice_", i, "_", t), state));
    }
    ISOMER_ASSIGN_OR_RETURN(const Names values, body.Iterate(operands));
    carried.assign(values.begin(), values.begin() + num_carried);
    for (int64_t i = 0; i < num_stacked; ++i) elements[i].push_back(values[num_carried + i]);
  }
  for (int64_t i = 0; i < num_stacked; ++i) {
    if (prepends[i] != 0) std::reverse(elements[i].begin(), elements[i].end());
    ISOMER_RETURN_IF_ERROR(
        Stack(node, num_carried + i, elements[i], stack_axes[i], state, refused));
  }
  return DefineOutputs(node, carried, state, refused);
}

}  // namespace

bool IsControlFlow(absl::string_view op) { return op == "If" || op == "Loop" || op == "Scan"; }

absl::Status ImportControlFlow(const OnnxNode& node, ImportState* state, Refused refused) {
  if (node.op == "If") return ImportIf(node, state, refused);
  if (node.op == "Loop") return ImportLoop(node, state, refused);
  return ImportScan(node, state, refused);
}

}  // namespace isomer
