// Matching and rewriting: how a rule is used on a graph.
#ifndef ISOMER_RULES_MATCHING_REWRITE_H_
#define ISOMER_RULES_MATCHING_REWRITE_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// What matching many rules on one graph shares: the live nodes by operator, and their users. Valid
// until the graph changes.
class GraphIndex {
 public:
  explicit GraphIndex(const Graph& graph);
  const Graph& graph() const { return *graph_; }
  // Live nodes of a kind, in order of ids.
  const std::vector<NodeId>& NodesOf(OpKind kind) const {
    return by_kind_[static_cast<size_t>(kind)];
  }
  // By live nodes, in order of their ids.
  absl::Span<const Graph::Use> UsersOf(NodeId id) const {
    return absl::MakeSpan(uses_).subspan(first_use_[id.value],
                                         first_use_[id.value + 1] - first_use_[id.value]);
  }
  // The place of a live node in the topological order: what it depends on has lower ones.
  int PositionOf(NodeId id) const { return position_[id.value]; }

 private:
  const Graph* graph_;
  std::array<std::vector<NodeId>, kNumOpKinds> by_kind_;
  std::vector<int> position_;
  std::vector<int> first_use_;  // per node and one more: its first in uses_
  std::vector<Graph::Use> uses_;
};

// A match of rule.source: the step that would apply it. Pattern variables are bound to graph
// tensors and attributes; conditions hold; inner tensors of the pattern may have other users (they
// stay). Both orders of the operands of Add and Mul are tried. Different pattern nodes match
// different nodes; different inputs may be one tensor. Degrees, sizes and numbers that occur in the
// target alone must be given in `given` (they match only those values); axes that occur in the
// target alone may be given, else every axis is tried.
// `near`: if not empty, only matches that use one of these nodes.
// A rule whose source has no node (x0 -> ...) matches the tensors of `near`, or every tensor.
// Matches are in order of node ids.
std::vector<DerivationStep> FindMatches(const Graph& graph, const Rule& rule,
                                        const Binding& given = {},
                                        const std::vector<NodeId>& near = {});
std::vector<DerivationStep> FindMatches(const GraphIndex& index, const Rule& rule,
                                        const Binding& given = {},
                                        const std::vector<NodeId>& near = {});

// The matches in which the node of the source's first output is `root`: no search over the graph,
// unless the source has several outputs.
std::vector<DerivationStep> MatchesAt(const GraphIndex& index, const Rule& rule, NodeId root,
                                      const Binding& given = {});

// The match of a rule without source nodes (x0 -> ...) at one tensor, if its conditions hold.
std::vector<DerivationStep> MatchesAtTensor(const GraphIndex& index, const Rule& rule,
                                            TensorRef tensor, const Binding& given = {});

// Applies a step in place: adds the target's nodes (reusing nothing), then redirects the uses of
// the source outputs. Ids of new nodes follow the graph's last, in target pattern order.
// Errors: the step does not match, conditions fail, the target does not type-check or has other
// output types, or a rule input depends on a source output. On error the graph is unchanged.
absl::Status ApplyStep(const Rule& rule, const DerivationStep& step, Graph* graph);
// What the nodes of a step's target are named: as the last of those that it replaces, but not as a
// parallel operator where there is another. `node_of`: a node by its id.
template <typename NodeOf>
std::string NameOfTarget(const DerivationStep& step, NodeOf node_of) {
  for (size_t i = step.nodes.size(); i-- > 0;) {
    const Node& node = node_of(step.nodes[i]);
    if (!IsParallel(node.op.kind())) return node.name;
  }
  return step.nodes.empty() ? "" : node_of(step.nodes.back()).name;
}

// The binding (types, variables) that a step stands for; attribute variables are read off the
// matched nodes. An error: the step's nodes or tensors are not in the graph.
absl::StatusOr<Binding> BindingOf(const Graph& graph, const Rule& rule, const DerivationStep& step);

}  // namespace isomer

#endif  // ISOMER_RULES_MATCHING_REWRITE_H_
