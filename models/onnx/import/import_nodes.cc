#include "models/onnx/import/import_nodes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/graph/fold.h"
#include "models/onnx/graph/patterns.h"
#include "models/onnx/import/control_flow.h"
#include "models/onnx/import/evaluate.h"
#include "models/onnx/import/evaluate_repeated.h"
#include "models/onnx/import/operators.h"
#include "models/onnx/import/sequences.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

const OnnxTensor* ConstantNamed(const std::string& name, const ImportState& state) {
  const auto found = state.onnx.constants.find(name);
  return found == state.onnx.constants.end() ? nullptr : &found->second;
}

// Shape(x): the sizes of x, from dim `start` to before dim `end`. Size(x): their product.
absl::StatusOr<OnnxTensor> FoldShape(const OnnxNode& node, ImportState* state) {
  if (node.inputs.size() != 1) return absl::InvalidArgumentError("it needs one input");
  OnnxAttributes attributes(node);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(node.inputs[0], state));
  OnnxTensor result;
  result.dtype = DataType::kInt64;
  result.is_literal = true;
  if (node.op == "Size") {
    ISOMER_RETURN_IF_ERROR(attributes.Finish());
    result.ints = {NumElementsOf(sizes)};
    return result;
  }
  const int64_t rank = static_cast<int64_t>(sizes.size());
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(attributes.Int("start", 0)), end = clamp(attributes.Int("end", rank));
  ISOMER_RETURN_IF_ERROR(attributes.Finish());
  if (start < end) result.ints.assign(sizes.begin() + start, sizes.begin() + end);
  result.dims = {result.size()};
  return result;
}

// The value of a node that is known before anything runs, if it is.
absl::StatusOr<std::optional<OnnxTensor>> ConstantValue(const OnnxNode& node, ImportState* state) {
  if (node.op == "Shape" || node.op == "Size") return FoldShape(node, state);
  std::vector<const OnnxTensor*> operands;
  for (const std::string& input : node.inputs) {
    operands.push_back(input.empty() ? nullptr : ConstantNamed(input, *state));
    if (operands.back() == nullptr && !input.empty()) return std::nullopt;
  }
  return FoldNode(node, operands, &state->fold_budget);
}

// Opsets before 9 are read as 9 is: operators that were different there are not known. (Where an
// attribute made the difference, it is refused as not known.)
bool MeansTheSameSince(int64_t opset, const std::string& op) {
  if (opset >= 7) return true;
  if (opset == 6) return op != "BatchNormalization" && op != "Dropout";  // is_test
  for (const char* oldest :
       {"GlobalAveragePool", "GlobalMaxPool", "Identity", "Not", "Softplus", "Softsign"}) {
    if (op == oldest) return true;
  }
  return false;
}

// How a tensor is read: "by node ..", "as an output of the graph"; empty: it is not.
std::string ReaderOf(const std::string& name, const OnnxGraph& graph) {
  const auto has_it = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const onnx::ValueInfoProto& output : graph.outputs) {
    if (output.name() == name) return "as an output of the graph";
  }
  for (const OnnxNode& node : graph.nodes) {
    if (has_it(node.inputs) || has_it(node.captures)) return absl::StrCat("by ", node.label);
    for (const OnnxNode& replaced : node.replaced) {
      if (has_it(replaced.inputs)) return absl::StrCat("by ", replaced.label);
    }
  }
  return "";
}

absl::Status ImportOperator(const OnnxNode& node, ImportState* state) {
  const OnnxOperator* const op = FindOnnxOperator(node.op);
  if (op == nullptr) {
    return absl::UnimplementedError("it is read only where its value is known at import");
  }
  const int num_inputs = static_cast<int>(node.inputs.size());
  if (num_inputs < op->min_inputs || num_inputs > op->max_inputs) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", num_inputs, " inputs, not ",
                                                   op->min_inputs, " to ", op->max_inputs));
  }
  for (size_t i = op->max_outputs; i < node.outputs.size(); ++i) {
    const std::string reader = ReaderOf(node.outputs[i], state->onnx);
    if (node.outputs[i].empty() || reader.empty()) continue;
    return absl::UnimplementedError(absl::StrCat("its output ", i, " ", QuotedName(node.outputs[i]),
                                                 ", read ", reader, ", is not computed"));
  }
  if (auto values = EvaluateConstantNode(node, *op, state)) {
    for (size_t i = 0; i < values->size(); ++i) {
      if (!node.outputs[i].empty()) {
        state->onnx.constants[node.outputs[i]] = std::move((*values)[i]);
      }
    }
    return absl::OkStatus();
  }
  NodeImporter importer(node, state);
  op->import(importer);
  return importer.Finish();
}

// A node of an operator that the user declares.
absl::Status ImportDeclared(OpKind kind, const OnnxNode& node, ImportState* state) {
  const DeclaredOperator& declared = DeclaredOperatorOf(kind);
  if (static_cast<int>(node.inputs.size()) != declared.operands ||
      static_cast<int>(node.outputs.size()) > declared.traits.most_outputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", node.inputs.size(), " inputs and ", node.outputs.size(), " outputs; operator ",
        declared.name, " has ", declared.operands, " and ", declared.traits.most_outputs));
  }
  NodeImporter importer(node, state);
  Operator op(kind);
  for (const DeclaredAttribute& attribute : declared.attributes) {
    if (!importer.attributes.Has(attribute.name)) continue;
    if (attribute.is_number) {
      op.Set(attribute.name, importer.attributes.Float(attribute.name, 0));
    } else {
      op.Set(attribute.name, importer.attributes.Int(attribute.name, 0));
    }
  }
  ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
  std::vector<TensorRef> operands;
  for (int i = 0; i < declared.operands; ++i) operands.push_back(importer.Operand(i));
  const TensorRef first = importer.Call(op, std::move(operands));
  for (int i = 0; i < importer.num_outputs(); ++i) importer.Define(i, {first.node, i});
  return importer.Finish();
}

// False for nodes behind one that was refused.
bool HasOperands(const OnnxNode& node, const ImportState& state) {
  auto is_defined = [&](const std::string& name) { return IsDefined(name, state); };
  return std::all_of(node.inputs.begin(), node.inputs.end(), is_defined);
}

bool IsOverLastDim(const OnnxNode& layer_norm, ImportState* state) {
  const auto sizes = SizesOf(layer_norm.inputs[0], state);
  const int64_t axis = layer_norm.attributes.at("axis").i();
  return !sizes.ok() || axis == -1 || axis == static_cast<int64_t>(sizes->size()) - 1;
}

// Tensors that go into Shape and Size, and nowhere else.
std::set<std::string> AskedForSizesAlone(const OnnxGraph& graph) {
  std::set<std::string> asked, used;
  for (const onnx::ValueInfoProto& output : graph.outputs) used.insert(output.name());
  for (const OnnxNode& node : graph.nodes) {
    const bool asks = node.domain.empty() && (node.op == "Shape" || node.op == "Size");
    (asks ? asked : used).insert(node.inputs.begin(), node.inputs.end());
    used.insert(node.captures.begin(), node.captures.end());
    for (const OnnxNode& replaced : node.replaced) {
      used.insert(replaced.inputs.begin(), replaced.inputs.end());
    }
  }
  for (const std::string& name : used) asked.erase(name);
  return asked;
}

// Nodes before `n` that it needs and that are not live, in order.
std::vector<size_t> DeadAncestors(const OnnxGraph& graph, const std::vector<bool>& live, size_t n) {
  std::vector<bool> needed(n + 1, false);
  needed[n] = true;
  std::vector<size_t> found;
  for (size_t m = n + 1; m-- > 0;) {
    if (!needed[m]) continue;
    if (m != n) found.push_back(m);
    for (const std::string& input : graph.nodes[m].inputs) {
      const auto producer = graph.producers.find(input);
      if (producer != graph.producers.end() && !live[producer->second]) {
        needed[producer->second] = true;
      }
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace

std::set<std::string> RunningStatistics(const OnnxGraph& graph) {
  std::set<std::string> names;
  for (const OnnxNode& node : graph.nodes) {
    if (node.op != "BatchNormalization" || !node.domain.empty()) continue;
    for (size_t i = 3; i < node.inputs.size(); ++i) names.insert(node.inputs[i]);
  }
  return names;
}

absl::StatusOr<std::vector<int64_t>> SizesOf(const std::string& name, ImportState* state) {
  if (const OnnxTensor* constant = ConstantNamed(name, *state)) return constant->dims;
  const auto repeated = state->repeated.find(name);
  if (repeated != state->repeated.end()) return repeated->second.dims;
  if (const auto sizes = state->sizes.find(name); sizes != state->sizes.end()) return sizes->second;
  ISOMER_ASSIGN_OR_RETURN(const TensorRef tensor, TensorNamed(name, state));
  return state->model.graph.type(tensor).Sizes();
}

bool IsDefined(const std::string& name, const ImportState& state) {
  return name.empty() || state.tensors.count(name) > 0 || state.leaves.weights.count(name) > 0 ||
         state.onnx.constants.count(name) > 0 || state.repeated.count(name) > 0 ||
         state.sizes.count(name) > 0 || state.sequences.count(name) > 0;
}

absl::Status DefineAlias(const std::string& name, const std::string& of, ImportState* state) {
  if (const auto sequence = state->sequences.find(of); sequence != state->sequences.end()) {
    state->sequences[name] = std::vector<std::string>(sequence->second);
    return absl::OkStatus();
  }
  if (const auto found = state->repeated.find(of); found != state->repeated.end()) {
    state->repeated[name] = RepeatedConstant(found->second);
    return absl::OkStatus();
  }
  if (const OnnxTensor* constant = ConstantNamed(of, *state);
      constant != nullptr && (constant->is_literal || !constant->is_float())) {
    state->onnx.constants[name] = OnnxTensor(*constant);
    return absl::OkStatus();
  }
  ISOMER_ASSIGN_OR_RETURN(state->tensors[name], TensorNamed(of, state));
  return absl::OkStatus();
}

absl::Status ImportNode(const OnnxNode& node, ImportState* state,
                        std::vector<RefusedNode>* refused) {
  if (!IsKnownOperator(state->onnx, node)) return absl::UnimplementedError("unknown operator");
  if (const auto declared = DeclaredForOnnx(node.domain, node.op); declared.has_value()) {
    return ImportDeclared(*declared, node, state);
  }
  if (IsControlFlow(node.op)) return ImportControlFlow(node, state, refused);
  if (IsSequenceOperator(node.op)) return ImportSequenceOperator(node, state);
  if (DefineSizesAlone(node, state) || EvaluateRepeated(node, state)) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(std::optional<OnnxTensor> value, ConstantValue(node, state));
  if (!value) return ImportOperator(node, state);
  state->onnx.constants[node.outputs[0]] = *std::move(value);
  return absl::OkStatus();
}

bool IsKnownOperator(const OnnxGraph& graph, const OnnxNode& node) {
  if (DeclaredForOnnx(node.domain, node.op).has_value()) return true;
  if (!node.domain.empty() || !MeansTheSameSince(graph.OpsetOf(node), node.op)) return false;
  return FindOnnxOperator(node.op) != nullptr || IsFoldable(node.op) || node.op == "Shape" ||
         node.op == "Size" || IsControlFlow(node.op) || IsSequenceOperator(node.op);
}

std::string DomainName(const OnnxNode& node) {
  return node.domain.empty() ? "ai.onnx" : node.domain;
}

std::string OpsetText(const OnnxGraph& graph, const OnnxNode& node) {
  if (node.domain.empty() && node.opset != 0) return absl::StrCat(node.opset);
  const auto opset = graph.opsets.find(node.domain);
  return opset == graph.opsets.end() ? "that the file does not import"
                                     : absl::StrCat(opset->second);
}

absl::Status ImportNodes(ImportState* state, std::vector<RefusedNode>* refused) {
  std::vector<bool> live = LiveNodes(state->onnx);
  state->asked_for_sizes = AskedForSizesAlone(state->onnx);
  auto import_one = [&](size_t n) {
    const OnnxNode& node = state->onnx.nodes[n];
    live[n] = true;
    if (refused != nullptr && IsKnownOperator(state->onnx, node) && !HasOperands(node, *state)) {
      return absl::OkStatus();
    }
    const absl::Status status = ImportNode(node, state, refused);
    if (status.ok()) return status;
    if (refused == nullptr) {
      return absl::Status(status.code(), absl::StrCat(node.label, ": ", status.message()));
    }
    refused->push_back({node, OpsetText(state->onnx, node), std::string(status.message())});
    return absl::OkStatus();
  };
  // A LayerNorm that is none takes the nodes that it was made from with it.
  const std::function<absl::Status(size_t)> resolve = [&](size_t n) -> absl::Status {
    OnnxNode& node = state->onnx.nodes[n];
    if (!node.replaced.empty() && !IsOverLastDim(node, state)) {
      node = OnnxNode(node.replaced[0]);
      for (size_t ancestor : DeadAncestors(state->onnx, live, n)) {
        if (!live[ancestor]) ISOMER_RETURN_IF_ERROR(resolve(ancestor));
      }
    }
    return import_one(n);
  };
  for (size_t n = 0; n < live.size(); ++n) {
    if (live[n]) ISOMER_RETURN_IF_ERROR(resolve(n));
  }
  return absl::OkStatus();
}

}  // namespace isomer
