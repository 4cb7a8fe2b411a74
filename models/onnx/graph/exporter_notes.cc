#include "models/onnx/graph/exporter_notes.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/onnx/graph/initializers.h"
#include "models/onnx/graph/provenance.h"

namespace isomer {
namespace {

// "onnx::Add_33": what the TorchScript exporter folded for node 33. A matrix of a product, or the
// weights of a recurrent layer, are parameters in another order, and are trained as they were.
bool IsFolded(const std::string& name) {
  constexpr char kPrefix[] = "onnx::";
  if (!absl::StartsWith(name, kPrefix)) return false;
  const std::string op(name, sizeof(kPrefix) - 1, name.rfind('_') - (sizeof(kPrefix) - 1));
  static const auto* const moved =
      new std::set<std::string>{"MatMul", "Gemm", "LSTM", "GRU", "RNN"};
  return !moved->contains(op);
}

// What the program calls for a node, and with what: "torch.ops.aten.add.Tensor" and "%x", "%y",
// "2".
struct ProgramCall {
  std::string target;
  std::vector<std::string> arguments;
};

// "%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args =
// (%p_e_weight, %tokens, 0), kwargs = {})"
ProgramCall CallOf(const onnx::NodeProto& node) {
  const std::string text = MetadataOf(node, "pkg.torch.onnx.fx_node");
  const std::string target_key = "target=", arguments_key = "args = (";
  const size_t target = text.find(target_key), behind = text.find(']', target);
  const size_t begin = text.find(arguments_key, target), end = text.find(')', begin);
  if (target == std::string::npos || behind == std::string::npos || begin == std::string::npos ||
      end == std::string::npos) {
    return {};
  }
  const size_t first = begin + arguments_key.size();
  return {text.substr(target + target_key.size(), behind - target - target_key.size()),
          absl::StrSplit(text.substr(first, end - first), ", ")};
}

}  // namespace

std::optional<int64_t> PaddingRowOf(const onnx::NodeProto& node) {
  const auto [target, arguments] = CallOf(node);
  if (target != "torch.ops.aten.embedding.default") return std::nullopt;
  int64_t row = 0;
  if (arguments.size() < 3 || !absl::SimpleAtoi(arguments[2], &row) || row < 0) return std::nullopt;
  return row;
}

std::vector<int> DetachedOperandsOf(const onnx::NodeProto& node) {
  const std::vector<std::string> arguments = CallOf(node).arguments;
  std::vector<int> detached;
  if (static_cast<int>(arguments.size()) != node.input_size()) return detached;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (StemOf(arguments[i]) == "%detach") detached.push_back(static_cast<int>(i));
  }
  return detached;
}

void NoteDetached(const OnnxGraph& graph, std::vector<std::string>* notes) {
  std::set<std::string> has_gradient;
  for (const auto& [name, tensor] : graph.constants) {
    if (IsTrained(tensor)) has_gradient.insert(name);
  }
  std::vector<std::string> detached;
  for (const OnnxNode& node : graph.nodes) {
    for (const int i : node.lost.detached) {
      if (has_gradient.contains(node.inputs[i])) detached.push_back(QuotedName(node.inputs[i]));
    }
    const auto is_trained = [&](const std::string& input) { return has_gradient.contains(input); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), is_trained)) {
      has_gradient.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  if (detached.empty()) return;
  notes->push_back(absl::StrCat(
      "PyTorch detaches ", detached.size(), detached.size() == 1 ? " tensor" : " tensors",
      " that the exporter did not; gradients go through ", detached.size() == 1 ? "it" : "them",
      " here, and other weights are trained than in PyTorch: ", SomeOf(detached)));
}

void NoteFoldedParameters(const OnnxGraph& graph, std::vector<std::string>* notes) {
  std::vector<std::string> folded;
  for (const auto& [name, tensor] : graph.constants) {
    if (tensor.is_float() && !tensor.is_literal && IsFolded(name))
      folded.push_back(QuotedName(name));
  }
  if (folded.empty()) return;
  notes->push_back(absl::StrCat(
      "the exporter computed ", folded.size(), folded.size() == 1 ? " tensor" : " tensors",
      " from parameters or buffers, in whose place they are trained (export with "
      "do_constant_folding=False and training=TrainingMode.PRESERVE, or by isomer.load): ",
      SomeOf(folded)));
}

}  // namespace isomer
