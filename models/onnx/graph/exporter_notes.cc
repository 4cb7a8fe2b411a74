#include "models/onnx/graph/exporter_notes.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

}  // namespace

std::optional<int64_t> PaddingRowOf(const onnx::NodeProto& node) {
  // "%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args =
  // (%p_e_weight, %tokens, 0), kwargs = {})"
  const std::string call = MetadataOf(node, "pkg.torch.onnx.fx_node");
  if (!absl::StrContains(call, "target=torch.ops.aten.embedding.default]")) return std::nullopt;
  const size_t begin = call.find("args = ("), end = call.find(')', begin);
  if (begin == std::string::npos || end == std::string::npos) return std::nullopt;
  const std::vector<std::string> arguments = absl::StrSplit(call.substr(begin, end - begin), ", ");
  int64_t row = 0;
  if (arguments.size() < 3 || !absl::SimpleAtoi(arguments[2], &row) || row < 0) return std::nullopt;
  return row;
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
