#include "runtime/execution/muon_weights.h"

#include <map>
#include <regex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<std::set<std::string>> MatchedBy(const Graph& model, const std::string& names) {
  std::regex expression;
  try {
    expression = std::regex(names, std::regex::ECMAScript | std::regex::nosubs);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--muon=", names, ": is no regular expression (", error.what(), ")"));
  }
  std::set<std::string> weights;
  for (int id = 0; id < model.num_nodes(); ++id) {
    const Node& node = model.node({id});
    const bool is_matrix = node.op.kind() == OpKind::kWeight && node.outputs[0].rank() == 2;
    if (!is_matrix || !std::regex_search(node.name, expression)) continue;
    weights.insert(node.name);
  }
  if (!weights.empty()) return weights;
  return absl::InvalidArgumentError(
      absl::StrCat("--muon=", names, ": matches no weight of two dims"));
}

}  // namespace

absl::StatusOr<std::set<std::string>> MuonWeights(const Graph& model,
                                                  const std::optional<std::string>& names) {
  if (names.has_value()) return MatchedBy(model, *names);
  // What is a weight but for where its elements lie.
  std::map<TensorRef, NodeId> weight_of;
  std::set<NodeId> multiplied, tables;
  NodeId last;
  for (int id = 0; id < model.num_nodes(); ++id) {
    const Node& node = model.node({id});
    const OpKind kind = node.op.kind();
    if (kind == OpKind::kWeight) {
      weight_of[{{id}, 0}] = {id};
      continue;
    }
    for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const auto weight = weight_of.find(node.inputs[operand]);
      if (weight == weight_of.end()) continue;
      if (IsLookUp(kind) && operand == 0) tables.insert(weight->second);
      if (kind == OpKind::kTranspose || kind == OpKind::kReshape || IsFloatCast(node.op)) {
        weight_of[{{id}, 0}] = weight->second;
      }
      const bool is_product = kind == OpKind::kMatMul || kind == OpKind::kLinear;
      if (!is_product || operand > 1) continue;
      multiplied.insert(weight->second);
      last = weight->second;
    }
  }
  std::set<std::string> weights;
  for (NodeId weight : multiplied) {
    const Node& node = model.node(weight);
    if (node.outputs[0].rank() == 2 && weight != last && !tables.contains(weight)) {
      weights.insert(node.name);
    }
  }
  return weights;
}

}  // namespace isomer
