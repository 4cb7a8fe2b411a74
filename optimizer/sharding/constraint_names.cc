#include "optimizer/sharding/constraint_names.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "optimizer/sharding/constraints.h"

namespace isomer {
namespace {

absl::Status Unknown(absl::string_view what, const std::string& name, const std::string& source,
                     const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  std::string text = absl::StrCat("the model has no ", what, " '", name, "'");
  if (!nearest.empty()) absl::StrAppend(&text, "; the nearest is '", nearest, "'");
  return ConstraintError(source, text);
}

}  // namespace

absl::Status ConstraintError(absl::string_view source, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", what));
}

absl::StatusOr<std::vector<TensorRef>> TensorsNamed(const Graph& graph, const std::string& name,
                                                    const std::string& source) {
  absl::string_view base = name;
  int output = 0;
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && absl::SimpleAtoi(base.substr(colon + 1), &output)) {
    base = base.substr(0, colon);
  } else {
    output = 0;
  }
  std::set<TensorRef> tensors;
  std::vector<std::string> known;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (!node.name.empty()) known.push_back(node.name);
    if (output < 0 || output >= static_cast<int>(node.outputs.size())) continue;
    if (MatchesGlob(base, node.name)) tensors.insert({NodeId{i}, output});
  }
  for (const Graph::NamedOutput& named : graph.outputs()) {
    known.push_back(named.name);
    if (MatchesGlob(name, named.name)) tensors.insert(named.tensor);
  }
  if (tensors.empty()) return Unknown("tensor", name, source, known);
  return std::vector<TensorRef>(tensors.begin(), tensors.end());
}

absl::StatusOr<std::vector<NodeId>> OperatorsNamed(const Graph& graph, const ComputeGraph& compute,
                                                   const std::string& name,
                                                   const std::string& source) {
  std::vector<NodeId> nodes;
  std::vector<std::string> known;
  bool other = false;  // another kind of node has the name
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const bool matches = MatchesGlob(name, graph.node(i).name);
    if (compute.index[i] < 0) {
      other |= matches;
      continue;
    }
    if (!graph.node(i).name.empty()) known.push_back(graph.node(i).name);
    if (matches) nodes.push_back(NodeId{i});
  }
  if (!nodes.empty()) return nodes;
  if (!other) return Unknown("operator", name, source, known);
  return ConstraintError(source, absl::StrCat("'", name,
                                              "' is no operator that runs in a step; name those "
                                              "that use it"));
}

std::string TensorLabel(const Graph& graph, TensorRef tensor) {
  std::string label = graph.Label(tensor.node);
  if (tensor.output > 0) absl::StrAppend(&label, " output ", tensor.output);
  return label;
}

}  // namespace isomer
