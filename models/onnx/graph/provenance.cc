#include "models/onnx/graph/provenance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/onnx/graph/exclusion.h"
#include "models/onnx/graph/exporter_notes.h"
#include "models/onnx/graph/initializers.h"

namespace isomer {
namespace {

// The strings of a list as Python prints it: "['add', 'model.wpe.weight']".
std::vector<std::string> PythonStrings(const std::string& text) {
  std::vector<std::string> strings;
  const std::vector<std::string> parts = absl::StrSplit(text, '\'');
  for (size_t i = 1; i < parts.size(); i += 2) strings.push_back(parts[i]);
  return strings;
}

template <typename Entries>
std::string ValueOf(const Entries& entries, const char* key) {
  for (const onnx::StringStringEntryProto& entry : entries) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

bool IsOfAngles(const std::vector<std::string>& folded_from) {
  return std::any_of(folded_from.begin(), folded_from.end(), [](const std::string& name) {
    const absl::string_view stem = StemOf(name);
    return stem == "sin" || stem == "cos";
  });
}

bool IsMask(const OnnxTensor& tensor) {
  const bool is_mask = std::any_of(tensor.floats.begin(), tensor.floats.end(),
                                   [](float value) { return ExcludesKeys(value); });
  tensor.floats.LetGo();
  return is_mask;
}

// That the exporter computed it from nothing that is trained.
bool IsComputed(const std::string& name, const OnnxTensor& tensor, const OnnxProvenance& provenance,
                const OnnxGraph& graph) {
  if (provenance.folded_from.empty()) return false;
  return IsOfAngles(provenance.folded_from) || IsMask(tensor) ||
         ModuleTensorsOf(name, graph).empty();
}

// Tables of angles: floats of the file from which nothing but a sine or a cosine is made, seen
// through what only moves elements.
std::set<std::string> Angles(const OnnxGraph& graph) {
  static const auto* const moves =
      new std::set<std::string>{"Cast",  "Concat",  "Expand",    "Identity", "Reshape",
                                "Slice", "Squeeze", "Transpose", "Unsqueeze"};
  // From the end: tensors that are used for angles alone.
  std::map<std::string, bool> only_angles;
  for (const onnx::ValueInfoProto& output : graph.outputs) only_angles[output.name()] = false;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const OnnxNode& node = graph.nodes[n];
    bool for_angles = node.domain.empty() && (node.op == "Sin" || node.op == "Cos");
    if (node.domain.empty() && moves->contains(node.op)) {
      const auto uses = only_angles.find(node.outputs[0]);
      for_angles = uses != only_angles.end() && uses->second;
    }
    for (const auto* names : {&node.inputs, &node.captures}) {
      for (const std::string& name : *names) {
        const auto known = only_angles.emplace(name, for_angles).first;
        known->second = known->second && for_angles;
      }
    }
  }
  std::set<std::string> angles;
  for (const auto& [name, constant] : graph.constants) {
    const auto uses = only_angles.find(name);
    if (constant.is_float() && uses != only_angles.end() && uses->second) angles.insert(name);
  }
  return angles;
}

// Numbers of formulas (an epsilon, the half of a Gelu, the factor before a softmax), which
// exporters of other frameworks than PyTorch write as initializers without dims, unless the name is
// that of a variable of TensorFlow. PyTorch's write them as Constant nodes, and parameters that are
// one number as initializers; files that say nothing of who wrote them, and ours, are read like
// these.
bool IsNumberOfFormula(const std::string& name, const OnnxTensor& tensor, const OnnxGraph& graph) {
  for (const char* producer : {"", "pytorch", "Isomer"}) {
    if (graph.producer == producer) return false;
  }
  return tensor.dims.empty() && !absl::StrContains(name, "ReadVariableOp");
}

}  // namespace

std::string SomeOf(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 3;
  const std::vector<std::string> some(lines.begin(), lines.begin() + std::min(kMost, lines.size()));
  return absl::StrCat(absl::StrJoin(some, ", "), lines.size() > kMost ? ", .." : "");
}

OnnxProvenance ProvenanceOf(const onnx::ValueInfoProto& value) {
  std::vector<std::string> folded_from =
      PythonStrings(ValueOf(value.metadata_props(), "pkg.onnxscript.optimizer.folded_from"));
  std::erase(folded_from, "");  // Of a text that is damaged.
  return {ValueOf(value.metadata_props(), "pkg.torch.export.graph_signature.InputSpec.kind"),
          std::move(folded_from)};
}

std::string ProgramNameOf(const onnx::ValueInfoProto& value) {
  return ValueOf(value.metadata_props(), "pkg.torch.onnx.original_node_name");
}

std::string MetadataOf(const onnx::NodeProto& node, const std::string& key) {
  return ValueOf(node.metadata_props(), key.c_str());
}

std::string ModuleOf(const onnx::NodeProto& node) {
  // ['', 'model', 'model.norm', 'rsqrt']: modules, and the node.
  const std::vector<std::string> scopes =
      PythonStrings(ValueOf(node.metadata_props(), "pkg.torch.onnx.name_scopes"));
  if (scopes.size() >= 2) return scopes[scopes.size() - 2];
  // "/model/norm/Mul"
  if (!absl::StartsWith(node.name(), "/")) return "";
  std::vector<std::string> parts = absl::StrSplit(absl::StripPrefix(node.name(), "/"), '/');
  parts.pop_back();
  return absl::StrJoin(parts, ".");
}

OnnxLoss LossOf(const onnx::NodeProto& node) {
  const std::string rules = ValueOf(node.metadata_props(), "pkg.onnxscript.rewriter.rule_name");
  OnnxLoss lost;
  lost.batch_norm = absl::StrContains(rules, "FuseBatchNorm");
  lost.padding_row = PaddingRowOf(node);
  lost.detached = DetachedOperandsOf(node);
  if (!absl::StrContains(rules, "RemoveOptionalBias")) return lost;
  // "%linear : [num_users=1] = call_function[target=..](args = (%x, %p_fc_weight, %p_fc_bias), ..":
  // a parameter, and no literal that was no bias.
  const std::vector<std::string> words = absl::StrSplit(
      ValueOf(node.metadata_props(), "pkg.torch.onnx.fx_node"), absl::ByAnyChar(" ,()"));
  lost.bias = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return absl::StartsWith(word, "%p_") && absl::EndsWith(word, "bias");
  });
  return lost;
}

namespace {

// Matrices of the file that the exporter gave names, as it computed them: "val_7",
// "onnx::MatMul_311".
bool IsComputedMatrix(const std::string& name, const OnnxTensor& tensor) {
  return (IsOfExporter(name) || absl::StartsWith(name, "onnx::")) && IsTrained(tensor) &&
         tensor.dims.size() == 2 && !AllEqual(tensor);
}

// That `turned` is `matrix` with rows and columns exchanged, tile by tile.
bool IsTransposeOf(const OnnxTensor& turned, const OnnxTensor& matrix) {
  if (matrix.dims.size() != 2 || turned.dtype != matrix.dtype ||
      turned.dims != std::vector<int64_t>{matrix.dims[1], matrix.dims[0]}) {
    return false;
  }
  constexpr int64_t kTile = 64;
  const int64_t rows = matrix.dims[0], columns = matrix.dims[1];
  for (int64_t top = 0; top < rows; top += kTile) {
    for (int64_t left = 0; left < columns; left += kTile) {
      for (int64_t r = top; r < std::min(top + kTile, rows); ++r) {
        for (int64_t c = left; c < std::min(left + kTile, columns); ++c) {
          if (matrix.floats[r * columns + c] != turned.floats[c * rows + r]) return false;
        }
      }
    }
  }
  return true;
}

// The parameters that `name` may be the transpose of: those that it was computed from, where the
// file says; else all that have names.
std::vector<std::string> OriginsOf(const std::string& name, const OnnxGraph& graph) {
  const auto known = graph.provenance.find(name);
  if (known != graph.provenance.end() && !known->second.folded_from.empty()) {
    return ModuleTensorsOf(name, graph);
  }
  std::vector<std::string> origins;
  for (const auto& [other, tensor] : graph.constants) {
    if (IsTrained(tensor) && !IsOfExporter(other) && !absl::StartsWith(other, "onnx::")) {
      origins.push_back(other);
    }
  }
  return origins;
}

}  // namespace

void RestoreTiedParameters(OnnxGraph* graph, std::vector<std::string>* notes) {
  std::vector<OnnxNode> transposes;
  std::vector<std::string> tied;
  for (const auto& [name, tensor] : graph->constants) {
    if (!IsComputedMatrix(name, tensor)) continue;
    for (const std::string& origin : OriginsOf(name, *graph)) {
      const auto matrix = graph->constants.find(origin);
      if (matrix == graph->constants.end() || !IsTransposeOf(tensor, matrix->second)) continue;
      // A symmetric one may as well be a parameter of its own that begins as the same.
      if (IsTransposeOf(tensor, tensor)) continue;
      OnnxNode transpose;
      transpose.op = "Transpose";
      transpose.label = absl::StrCat("node of ", QuotedName(name), " ('Transpose')");
      transpose.inputs = {origin};
      transpose.outputs = {name};
      transposes.push_back(std::move(transpose));
      tied.push_back(QuotedName(origin));
      break;
    }
  }
  if (transposes.empty()) return;
  for (const OnnxNode& transpose : transposes) graph->constants.erase(transpose.outputs[0]);
  graph->nodes.insert(graph->nodes.begin(), transposes.begin(), transposes.end());
  graph->IndexProducers();
  notes->push_back(absl::StrCat("the exporter wrote ", tied.size(),
                                tied.size() == 1 ? " parameter" : " parameters",
                                " twice, once transposed, of modules that share it; it is one, as "
                                "in PyTorch: ",
                                SomeOf(tied)));
}

void MarkLiterals(OnnxGraph* graph) {
  const std::set<std::string> angles = Angles(*graph);
  for (auto& [name, constant] : graph->constants) {
    if (!IsTrained(constant)) continue;
    const auto known = graph->provenance.find(name);
    const OnnxProvenance nothing;
    const OnnxProvenance& provenance = known == graph->provenance.end() ? nothing : known->second;
    const bool is_number = constant.size() == 1 && IsOfExporter(name);
    const bool is_kept = provenance.kind == "FROZEN" || absl::EndsWith(provenance.kind, "BUFFER") ||
                         absl::EndsWith(provenance.kind, "CONSTANT_TENSOR");
    constant.is_literal = is_number || is_kept || angles.contains(name) ||
                          IsNumberOfFormula(name, constant, *graph) ||
                          IsComputed(name, constant, provenance, *graph);
  }
}

void NoteComputedParameters(const OnnxGraph& graph, std::vector<std::string>* notes) {
  std::vector<std::string> computed;
  for (const auto& [name, constant] : graph.constants) {
    const auto known = graph.provenance.find(name);
    if (!IsTrained(constant) || known == graph.provenance.end()) continue;
    if (known->second.folded_from.size() < 2) continue;
    computed.push_back(absl::StrCat(QuotedName(name), " for ",
                                    absl::StrJoin(ModuleTensorsOf(name, graph), " and ")));
  }
  if (computed.empty()) return;
  notes->push_back(absl::StrCat(
      "the exporter computed ", computed.size(), computed.size() == 1 ? " tensor" : " tensors",
      " from parameters, in whose place they are trained (export with optimize=False to train the "
      "parameters themselves): ",
      SomeOf(computed)));
}

namespace {

// The legacy exporter leaves an Identity_N, outside of any module, with the name of each parameter
// that it merged into another. Gives those back that are one number; by name of the other, how many
// they were. Others may be tied, as tables are, and stay so: `tied` gets them.
std::map<std::string, int> SeparateMergedNames(OnnxGraph* graph, std::vector<std::string>* tied) {
  std::map<std::string, int> merged;
  const auto is_output = [&](const std::string& name) {
    return std::any_of(graph->outputs.begin(), graph->outputs.end(),
                       [&](const auto& output) { return output.name() == name; });
  };
  std::erase_if(graph->nodes, [&](const OnnxNode& node) {
    if (node.op != "Identity" || !absl::StrContains(node.label, "'Identity_") ||
        is_output(node.outputs[0])) {
      return false;
    }
    const auto constant = graph->constants.find(node.inputs[0]);
    if (constant == graph->constants.end() || !IsTrained(constant->second)) return false;
    if (!AllEqual(constant->second)) {
      tied->push_back(
          absl::StrCat(QuotedName(node.outputs[0]), " (", QuotedName(constant->first), ")"));
      return false;
    }
    graph->constants[node.outputs[0]] = OnnxTensor(constant->second);
    ++merged[constant->first];
    return true;
  });
  if (!merged.empty()) graph->IndexProducers();
  return merged;
}

}  // namespace

void SeparateMergedParameters(OnnxGraph* graph, std::vector<std::string>* notes) {
  std::vector<std::string> merged;
  std::vector<std::string> tied;
  for (const auto& [name, others] : SeparateMergedNames(graph, &tied)) {
    merged.push_back(absl::StrCat(QuotedName(name), " of ", others + 1, " names"));
  }
  if (!tied.empty()) {
    notes->push_back(absl::StrCat(
        "the exporter made one of ", tied.size(), tied.size() == 1 ? " parameter" : " parameters",
        " and others of the same values, which are trained as one (if they are none in PyTorch, "
        "export with training=torch.onnx.TrainingMode.TRAINING): ",
        SomeOf(tied)));
  }
  std::map<std::string, std::map<std::string, std::vector<OnnxNode*>>> users;  // by name, module
  for (OnnxNode& node : graph->nodes) {
    for (const std::string& input : node.inputs) {
      const auto constant = graph->constants.find(input);
      if (constant != graph->constants.end() && IsTrained(constant->second) &&
          AllEqual(constant->second)) {
        users[input][node.module].push_back(&node);
      }
    }
  }
  for (auto& [name, of_modules] : users) {
    if (of_modules.size() < 2 || of_modules.contains("")) continue;
    merged.push_back(absl::StrCat(QuotedName(name), " of ", of_modules.size(), " modules"));
    const size_t dot = name.rfind('.');
    const std::string last = dot == std::string::npos ? name : name.substr(dot + 1);
    // The name stays with its own module, or with the first.
    std::string keeps = dot == std::string::npos ? "" : name.substr(0, dot);
    if (!of_modules.contains(keeps)) keeps = of_modules.begin()->first;
    for (const auto& [module, nodes] : of_modules) {
      if (module == keeps) continue;
      const std::string own = UnusedName(absl::StrCat(module, ".", last), graph);
      graph->constants[own] = OnnxTensor(graph->constants[name]);
      for (OnnxNode* node : nodes) {
        std::replace(node->inputs.begin(), node->inputs.end(), name, own);
      }
    }
  }
  if (merged.empty()) return;
  notes->push_back(absl::StrCat(
      "parameters of several modules had equal initial values, and the exporter made them one; "
      "they are trained apart, as in PyTorch: ",
      SomeOf(merged)));
}

namespace {

// Output channels of a product with the weight `dims`; 0 for another operator.
int64_t ChannelsOf(const OnnxNode& node, const std::vector<int64_t>& dims) {
  const auto attribute = [&](const char* name, int64_t otherwise) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? otherwise : found->second.i();
  };
  if (dims.size() < 2) return 0;
  if (node.op == "Conv") return dims[0];
  if (node.op == "ConvTranspose") return dims[1] * attribute("group", 1);
  if (node.op == "Gemm") return attribute("transB", 0) != 0 ? dims[0] : dims[1];
  return 0;
}

}  // namespace

void RestoreDroppedBiases(OnnxGraph* graph, std::vector<std::string>* notes) {
  std::map<std::string, std::string> bias_of;  // by weight: a module that is called twice has one
  std::vector<std::string> restored, folded;
  for (OnnxNode& node : graph->nodes) {
    if (node.inputs.size() < 2) continue;
    const std::string& weight = node.inputs[1];
    if (node.lost.batch_norm) folded.push_back(QuotedName(weight));
    if (!node.lost.bias || (node.inputs.size() > 2 && !node.inputs[2].empty())) continue;
    const auto constant = graph->constants.find(weight);
    if (constant == graph->constants.end() || !IsTrained(constant->second)) continue;
    const int64_t channels = ChannelsOf(node, constant->second.dims);
    if (channels == 0) continue;
    const auto [bias, is_new] = bias_of.try_emplace(weight);
    if (is_new) {
      const bool is_called_so = absl::EndsWith(weight, ".weight");
      bias->second = UnusedName(
          absl::StrCat(is_called_so ? absl::StripSuffix(weight, ".weight") : node.module, ".bias"),
          graph);
      OnnxTensor zeros;
      zeros.dtype = constant->second.dtype;
      zeros.dims = {channels};
      zeros.floats = std::vector<float>(static_cast<size_t>(channels), 0.0f);
      graph->constants[bias->second] = std::move(zeros);
      restored.push_back(QuotedName(bias->second));
    }
    node.inputs.resize(2);
    node.inputs.push_back(bias->second);
  }
  if (!restored.empty()) {
    notes->push_back(absl::StrCat(
        "the exporter left out ", restored.size(), restored.size() == 1 ? " bias" : " biases",
        " of zeros, which are there again, and trained as in PyTorch: ", SomeOf(restored)));
  }
  if (!folded.empty()) {
    notes->push_back(absl::StrCat(
        "the exporter folded ", folded.size(), folded.size() == 1 ? " BatchNorm" : " BatchNorms",
        " into weights, which are trained without (export the model in training mode to train "
        "them): ",
        SomeOf(folded)));
  }
}

}  // namespace isomer
