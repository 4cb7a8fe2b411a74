#include "models/partial_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr size_t kMostSuggestions = 3;

// How many letters must be changed, left out or added (Levenshtein).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Nearest first. A name that contains the other is near, whatever is around it.
std::vector<std::string> NamesLike(const std::map<std::string, TensorRef>& names,
                                   const std::string& name) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const auto& [known, tensor] : names) {
    const bool contains = !name.empty() && absl::StrContains(known, name);
    const size_t distance = contains ? 1 : EditDistance(known, name);
    if (contains || distance <= std::max<size_t>(2, name.size() / 3)) {
      near.emplace_back(distance, known);
    }
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> nearest;
  for (const auto& [distance, known] : near) {
    if (nearest.size() < kMostSuggestions) nearest.push_back(absl::StrCat("'", known, "'"));
  }
  return nearest;
}

}  // namespace

std::map<std::string, TensorRef> TensorNames(const Graph& graph) {
  std::map<std::string, TensorRef> names;
  std::set<std::string> leaves;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    if (node.name.empty()) continue;
    if (IsLeaf(node.op.kind())) leaves.insert(node.name);
    if (!IsLeaf(node.op.kind()) && leaves.contains(node.name)) continue;
    names[node.name] = {id, 0};
    for (int o = 1; o < static_cast<int>(node.outputs.size()); ++o) {
      names[absl::StrCat(node.name, ":", o)] = {id, o};
    }
  }
  for (const Graph::NamedOutput& output : graph.outputs()) names[output.name] = output.tensor;
  return names;
}

absl::StatusOr<TensorRef> FindTensor(const std::map<std::string, TensorRef>& names,
                                     const std::string& name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  const std::vector<std::string> near = NamesLike(names, name);
  return absl::NotFoundError(absl::StrCat(
      "there is no tensor '", name, "'",
      near.empty() ? "; what an import merged or computed itself has no name"
                   : absl::StrCat("; did you mean ", absl::StrJoin(near, " or "), "?")));
}

absl::StatusOr<Graph> CutGraph(const Graph& graph, const std::map<std::string, TensorRef>& feeds,
                               const std::vector<Graph::NamedOutput>& fetches) {
  std::map<TensorRef, std::string> fed;
  for (const auto& [name, tensor] : feeds) fed.emplace(tensor, name);
  std::set<int> needed;
  std::vector<TensorRef> open;
  for (const Graph::NamedOutput& fetch : fetches) open.push_back(fetch.tensor);
  while (!open.empty()) {
    const TensorRef tensor = open.back();
    open.pop_back();
    if (fed.contains(tensor) || !needed.insert(tensor.node.value).second) continue;
    for (TensorRef input : graph.node(tensor.node).inputs) open.push_back(input);
  }
  Graph cut;
  std::map<TensorRef, TensorRef> made;
  for (const auto& [name, tensor] : feeds) made[tensor] = cut.AddInput(name, graph.type(tensor));
  for (NodeId id : graph.TopologicalOrder()) {
    if (!needed.contains(id.value)) continue;
    const Node& node = graph.node(id);
    NodeId added;
    if (IsLeaf(node.op.kind())) {
      added = cut.AddLeaf(node.op.kind(), node.name, node.outputs[0]).node;
    } else {
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) inputs.push_back(made.at(input));
      ISOMER_ASSIGN_OR_RETURN(added, cut.Add(node.op, std::move(inputs), node.name));
    }
    for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o) {
      made.try_emplace({id, o}, TensorRef{added, o});
    }
  }
  for (const Graph::NamedOutput& fetch : fetches) cut.AddOutput(fetch.name, made.at(fetch.tensor));
  ISOMER_RETURN_IF_ERROR(cut.Validate());
  return cut;
}

}  // namespace isomer
