#include "rules/matching/rewrite.h"

#include <algorithm>
#include <set>

#include "rules/matching/matcher.h"

namespace isomer {

GraphIndex::GraphIndex(const Graph& graph)
    : graph_(&graph), position_(graph.num_nodes(), -1), first_use_(graph.num_nodes() + 1, 0) {
  int position = 0;
  std::vector<NodeId> live = graph.TopologicalOrder();
  for (NodeId id : live) position_[id.value] = position++;
  std::sort(live.begin(), live.end());
  for (NodeId id : live) {
    by_kind_[static_cast<size_t>(graph.node(id).op.kind())].push_back(id);
    for (TensorRef input : graph.node(id).inputs) ++first_use_[input.node.value + 1];
  }
  for (int id = 0; id < graph.num_nodes(); ++id) first_use_[id + 1] += first_use_[id];
  uses_.resize(first_use_.back());
  std::vector<int> next(first_use_.begin(), first_use_.end() - 1);
  for (NodeId id : live) {
    const std::vector<TensorRef>& inputs = graph.node(id).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      uses_[next[inputs[i].node.value]++] = {id, static_cast<int>(i)};
    }
  }
}

namespace {

// Nodes that a match using one of `near` can have as a root: users of users of .. of them. A
// pattern with several outputs may also reach them through another output.
std::vector<NodeId> RootsNear(const GraphIndex& index, const Rule& rule, OpKind kind,
                              const std::vector<NodeId>& near) {
  if (near.empty() || rule.source.outputs.size() > 1) return index.NodesOf(kind);
  std::set<NodeId> reached(near.begin(), near.end()), frontier = reached;
  for (int step = 1; step < DepthOf(rule.source); ++step) {
    std::set<NodeId> next;
    for (NodeId id : frontier) {
      for (const Graph::Use& use : index.UsersOf(id)) {
        if (reached.insert(use.user).second) next.insert(use.user);
      }
    }
    frontier = std::move(next);
  }
  std::vector<NodeId> roots;
  for (NodeId id : reached) {
    if (index.graph().node(id).op.kind() == kind) roots.push_back(id);
  }
  return roots;
}

}  // namespace

std::vector<DerivationStep> FindMatches(const GraphIndex& index, const Rule& rule,
                                        const Binding& given, const std::vector<NodeId>& near) {
  for (const PatternNode& node : rule.source.nodes) {
    if (index.NodesOf(node.kind).empty()) return {};
  }
  Matcher matcher(index, rule, given);
  const Graph& graph = index.graph();
  const int root = FirstRootOf(rule.source);
  if (root < 0) {
    std::vector<NodeId> nodes = near;
    if (near.empty()) nodes = graph.TopologicalOrder();
    std::sort(nodes.begin(), nodes.end());
    for (NodeId id : nodes) {
      for (int o = 0; o < static_cast<int>(graph.node(id).outputs.size()); ++o) {
        matcher.MatchTensor({id, o});
      }
    }
    return matcher.TakeSteps();
  }
  const OpKind kind = rule.source.nodes[rule.source.outputs[root].node].kind;
  for (NodeId id : RootsNear(index, rule, kind, near)) matcher.MatchRoot(id);
  std::vector<DerivationStep> steps = matcher.TakeSteps();
  if (!near.empty()) {
    std::erase_if(steps, [&](const DerivationStep& step) {
      return std::none_of(step.nodes.begin(), step.nodes.end(), [&](NodeId id) {
        return std::find(near.begin(), near.end(), id) != near.end();
      });
    });
  }
  return steps;
}

std::vector<DerivationStep> FindMatches(const Graph& graph, const Rule& rule, const Binding& given,
                                        const std::vector<NodeId>& near) {
  return FindMatches(GraphIndex(graph), rule, given, near);
}

std::vector<DerivationStep> MatchesAt(const GraphIndex& index, const Rule& rule, NodeId root,
                                      const Binding& given) {
  Matcher matcher(index, rule, given);
  if (FirstRootOf(rule.source) < 0) return {};
  matcher.MatchRoot(root);
  return matcher.TakeSteps();
}

std::vector<DerivationStep> MatchesAtTensor(const GraphIndex& index, const Rule& rule,
                                            TensorRef tensor, const Binding& given) {
  Matcher matcher(index, rule, given);
  if (FirstRootOf(rule.source) >= 0) return {};
  matcher.MatchTensor(tensor);
  return matcher.TakeSteps();
}

}  // namespace isomer
