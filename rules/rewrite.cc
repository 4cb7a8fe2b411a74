// The matcher walks the source pattern from its first output towards the inputs, in step with the
// graph, and backtracks over the order of commutative operands. A pattern with several outputs goes
// on from a neighbour of what is matched already: a user of a bound tensor. So the cost of a match
// is that of the pattern, and the graph is searched only for candidates of the first output's
// operator, which an index gives.
#include "rules/rewrite.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/conditions.h"
#include "rules/match.h"

namespace isomer {

GraphIndex::GraphIndex(const Graph& graph)
    : graph_(&graph), users_(graph.Users()), position_(graph.num_nodes(), -1) {
  int position = 0;
  for (NodeId id : graph.TopologicalOrder()) {
    by_kind_[graph.node(id).op.kind()].push_back(id);
    position_[id.value] = position++;
  }
  for (auto& [kind, ids] : by_kind_) std::sort(ids.begin(), ids.end());
}

const std::vector<NodeId>& GraphIndex::NodesOf(OpKind kind) const {
  static const std::vector<NodeId> kNone;
  const auto found = by_kind_.find(kind);
  return found == by_kind_.end() ? kNone : found->second;
}

namespace {

// What must still be matched: this tensor of the pattern is this tensor of the graph.
struct Obligation {
  PatternRef pattern;
  TensorRef tensor;
};

class Matcher {
 public:
  Matcher(const GraphIndex& index, const Rule& rule, const Binding& given)
      : index_(index), graph_(index.graph()), rule_(rule), given_(given) {
    start_.nodes.assign(rule.source.nodes.size(), NodeId{-1});
    start_.swapped.assign(rule.source.nodes.size(), false);
    start_.inputs.assign(rule.num_inputs, std::nullopt);
    start_.binding = given;
    start_.binding.inputs.clear();
  }

  // The first output that a node computes, or -1 if the source has no node.
  int FirstRoot() const { return NextRoot(start_); }

  void MatchRoot(NodeId root) {
    const int output = FirstRoot();
    const PatternRef ref = rule_.source.outputs[output];
    if (graph_.node(root).op.kind() != rule_.source.nodes[ref.node].kind ||
        ref.index >= static_cast<int>(graph_.node(root).outputs.size())) {
      return;
    }
    Resume(start_, {{ref, TensorRef{root, ref.index}}});
  }

  void MatchTensor(TensorRef tensor) {
    if (graph_.Contains(tensor)) Resume(start_, {{rule_.source.outputs[0], tensor}});
  }

  std::vector<DerivationStep> TakeSteps() { return std::move(steps_); }

 private:
  int NextRoot(const PartialMatch& match) const {
    for (size_t o = 0; o < rule_.source.outputs.size(); ++o) {
      const PatternRef ref = rule_.source.outputs[o];
      if (ref.node >= 0 && match.nodes[ref.node].value < 0) return static_cast<int>(o);
    }
    return -1;
  }

  void Resume(PartialMatch match, std::vector<Obligation> obligations) {
    while (!obligations.empty()) {
      const auto [pattern, tensor] = obligations.back();
      obligations.pop_back();
      if (pattern.node < 0) {
        std::optional<TensorRef>& input = match.inputs[pattern.index];
        if (input.has_value() && *input != tensor) return;
        input = tensor;
        continue;
      }
      if (tensor.output != pattern.index) return;
      if (match.nodes[pattern.node].value >= 0) {
        if (match.nodes[pattern.node] != tensor.node) return;
        continue;
      }
      if (!BindNode(pattern.node, tensor.node, &match)) return;
      const PatternNode& node = rule_.source.nodes[pattern.node];
      const std::vector<TensorRef>& operands = graph_.node(tensor.node).inputs;
      if (IsCommutative(node.kind) && operands[0] != operands[1]) {
        PartialMatch other = match;
        std::vector<Obligation> rest = obligations;
        other.swapped[pattern.node] = true;
        rest.push_back({node.inputs[0], operands[1]});
        rest.push_back({node.inputs[1], operands[0]});
        Resume(std::move(other), std::move(rest));
      }
      for (size_t i = 0; i < operands.size(); ++i) {
        obligations.push_back({node.inputs[i], operands[i]});
      }
    }
    const int root = NextRoot(match);
    if (root < 0) {
      Finish(std::move(match));
      return;
    }
    const PatternRef ref = rule_.source.outputs[root];
    for (NodeId candidate : RootCandidates(match, ref.node)) {
      if (ref.index < static_cast<int>(graph_.node(candidate).outputs.size())) {
        Resume(match, {{ref, TensorRef{candidate, ref.index}}});
      }
    }
  }

  bool BindNode(int pattern_node, NodeId id, PartialMatch* match) const {
    const PatternNode& node = rule_.source.nodes[pattern_node];
    const Node& found = graph_.node(id);
    if (found.op.kind() != node.kind || found.inputs.size() != node.inputs.size() ||
        std::find(match->nodes.begin(), match->nodes.end(), id) != match->nodes.end()) {
      return false;
    }
    match->nodes[pattern_node] = id;
    return UnifyAttributes(node, found.op, graph_.type(found.inputs[0]).rank(), &match->binding);
  }

  // Graph nodes that may be a further root: users of a bound tensor it takes, else any of its kind.
  std::vector<NodeId> RootCandidates(const PartialMatch& match, int pattern_node) const {
    const PatternNode& node = rule_.source.nodes[pattern_node];
    for (PatternRef ref : node.inputs) {
      std::optional<TensorRef> tensor;
      if (ref.node < 0) {
        tensor = match.inputs[ref.index];
      } else if (match.nodes[ref.node].value >= 0) {
        tensor = TensorRef{match.nodes[ref.node], ref.index};
      }
      if (!tensor.has_value()) continue;
      std::set<NodeId> users;
      for (const Graph::Use& use : index_.UsersOf(tensor->node)) {
        if (graph_.node(use.user).op.kind() == node.kind) users.insert(use.user);
      }
      return {users.begin(), users.end()};
    }
    return index_.NodesOf(node.kind);
  }

  // All nodes are bound: types, attributes that had to wait, free axes, conditions.
  void Finish(PartialMatch match) {
    for (const std::optional<TensorRef>& input : match.inputs) {
      if (!input.has_value()) return;  // A variable that the source does not use.
      match.binding.inputs.push_back(graph_.type(*input));
    }
    if (rule_.source.outputs.size() > 1 && DependsOnOutputs(match)) return;
    std::vector<std::string> free_axes;
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kNumber) {
        if (match.binding.numbers.count(variable.name) == 0) return;
      } else if (variable.kind != VariableKind::kAttribute &&
                 match.binding.variables.count(variable.name) == 0) {
        if (variable.kind != VariableKind::kAxis) return;
        free_axes.push_back(variable.name);
      }
    }
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind == Condition::Kind::kSplitsDim && !free_axes.empty()) {
        FinishSplit(condition, match, free_axes);
        return;
      }
    }
    ChooseAxes(free_axes, 0, &match);
  }

  // Free axes of a kSplitsDim condition are those of one iteration dim: few, and found directly.
  void FinishSplit(const Condition& condition, const PartialMatch& match,
                   const std::vector<std::string>& free_axes) {
    const auto [op, operands] = Call(match, condition.node);
    for (const SplittableDim& dim : SplittableDims(op, operands)) {
      PartialMatch bound = match;
      bool fits = dim.operand_axes.size() == condition.operand_axes.size() &&
                  dim.output_axes.size() == condition.output_axes.size();
      auto bind = [&](const std::optional<IntExpr>& expr, const std::optional<int64_t>& axis) {
        fits = fits && expr.has_value() == axis.has_value();
        if (!fits || !axis.has_value() || expr->kind != IntExpr::Kind::kVariable) return;
        fits = bound.binding.variables.emplace(expr->variable, *axis).first->second == *axis;
      };
      for (size_t o = 0; fits && o < dim.operand_axes.size(); ++o) {
        bind(condition.operand_axes[o], dim.operand_axes[o]);
      }
      for (size_t t = 0; fits && t < dim.output_axes.size(); ++t) {
        bind(condition.output_axes[t], dim.output_axes[t]);
      }
      if (!fits) continue;
      std::vector<std::string> rest;
      for (const std::string& name : free_axes) {
        if (bound.binding.variables.count(name) == 0) rest.push_back(name);
      }
      ChooseAxes(rest, 0, &bound);
    }
  }

  void ChooseAxes(const std::vector<std::string>& free_axes, size_t next, PartialMatch* match) {
    if (next == free_axes.size()) {
      Emit(*match);
      return;
    }
    int rank = 0;
    for (const TensorType& type : match->binding.inputs) rank = std::max(rank, type.rank());
    for (int64_t axis = -rank; axis < 0; ++axis) {
      match->binding.variables[free_axes[next]] = axis;
      ChooseAxes(free_axes, next + 1, match);
    }
    match->binding.variables.erase(free_axes[next]);
  }

  void Emit(const PartialMatch& match) {
    for (size_t n = 0; n < match.nodes.size(); ++n) {
      const Node& node = graph_.node(match.nodes[n]);
      if (!AttributesAgree(rule_.source.nodes[n], node.op, graph_.type(node.inputs[0]).rank(),
                           match.binding)) {
        return;
      }
    }
    if (!Admits(rule_, match.binding, [&](int node) { return Call(match, node); })) return;
    DerivationStep step;
    step.rule = rule_.id;
    step.nodes = match.nodes;
    for (const std::optional<TensorRef>& input : match.inputs) step.inputs.push_back(*input);
    // `given` may speak of variables of other rules.
    for (const RuleVariable& variable : rule_.variables) {
      if (auto found = match.binding.variables.find(variable.name);
          found != match.binding.variables.end()) {
        step.variables.insert(*found);
      } else if (auto number = match.binding.numbers.find(variable.name);
                 number != match.binding.numbers.end()) {
        step.numbers.insert(*number);
      }
    }
    steps_.push_back(std::move(step));
  }

  std::pair<Operator, std::vector<TensorType>> Call(const PartialMatch& match, int n) const {
    const Node& node = graph_.node(match.nodes[n]);
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(graph_.type(input));
    if (match.swapped[n]) std::swap(types[0], types[1]);
    return {node.op, types};
  }

  // True if a rule input is computed from a source output: the rewrite would close a cycle.
  bool DependsOnOutputs(const PartialMatch& match) const {
    std::set<NodeId> roots, seen;
    int first_root = graph_.num_nodes();
    for (PatternRef ref : rule_.source.outputs) {
      if (ref.node < 0) continue;
      roots.insert(match.nodes[ref.node]);
      first_root = std::min(first_root, index_.PositionOf(match.nodes[ref.node]));
    }
    std::vector<NodeId> stack;
    // What comes before every root depends on none.
    auto visit = [&](NodeId id) {
      if (index_.PositionOf(id) >= first_root && seen.insert(id).second) stack.push_back(id);
    };
    for (const auto& input : match.inputs) visit(input->node);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (roots.count(id) > 0) return true;
      for (TensorRef input : graph_.node(id).inputs) visit(input.node);
    }
    return false;
  }

  const GraphIndex& index_;
  const Graph& graph_;
  const Rule& rule_;
  const Binding& given_;
  PartialMatch start_;
  std::vector<DerivationStep> steps_;
};

// Longest path from an output of the pattern to a node, in nodes.
int Depth(const Pattern& pattern) {
  std::vector<int> height(pattern.nodes.size(), 1);
  int depth = 0;
  for (size_t n = 0; n < pattern.nodes.size(); ++n) {
    for (PatternRef ref : pattern.nodes[n].inputs) {
      if (ref.node >= 0) height[n] = std::max(height[n], height[ref.node] + 1);
    }
    depth = std::max(depth, height[n]);
  }
  return depth;
}

// Nodes that a match using one of `near` can have as a root: users of users of .. of them. A
// pattern with several outputs may also reach them through another output.
std::vector<NodeId> RootsNear(const GraphIndex& index, const Rule& rule, OpKind kind,
                              const std::vector<NodeId>& near) {
  if (near.empty() || rule.source.outputs.size() > 1) return index.NodesOf(kind);
  std::set<NodeId> reached(near.begin(), near.end()), frontier = reached;
  for (int step = 1; step < Depth(rule.source); ++step) {
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
  const int root = matcher.FirstRoot();
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
  if (matcher.FirstRoot() < 0) return {};
  matcher.MatchRoot(root);
  return matcher.TakeSteps();
}

std::vector<DerivationStep> MatchesAtTensor(const GraphIndex& index, const Rule& rule,
                                            TensorRef tensor, const Binding& given) {
  Matcher matcher(index, rule, given);
  if (matcher.FirstRoot() >= 0) return {};
  matcher.MatchTensor(tensor);
  return matcher.TakeSteps();
}

}  // namespace isomer
