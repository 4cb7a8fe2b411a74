#include "rules/matching/matcher.h"

#include <algorithm>
#include <vector>

#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "rules/matching/conditions.h"

namespace isomer {

uint64_t HashOfCall(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  uint64_t hash = node.op.Hash();
  for (TensorRef input : node.inputs) {
    const TensorType& type = graph.type(input);
    hash = HashCombine(hash, static_cast<uint64_t>(type.dtype), type.dims.size(),
                       static_cast<uint64_t>(type.copies), static_cast<uint64_t>(type.partials),
                       static_cast<uint64_t>(type.micro_batches));
    for (const Dim& dim : type.dims) {
      hash = HashCombine(hash, static_cast<uint64_t>(dim.size), static_cast<uint64_t>(dim.degree));
    }
  }
  return hash;
}

int FirstRootOf(const Pattern& pattern) {
  for (size_t o = 0; o < pattern.outputs.size(); ++o) {
    if (pattern.outputs[o].node >= 0) return static_cast<int>(o);
  }
  return -1;
}

int DepthOf(const Pattern& pattern) {
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

Matcher::Matcher(const GraphIndex& index, const Rule& rule, const Binding& given,
                 std::vector<uint64_t>* call_hashes, MatchMemo* memo, const NearNodes* near)
    : index_(index),
      graph_(index.graph()),
      rule_(rule),
      call_hashes_(call_hashes),
      memo_(memo),
      near_(near) {
  start_.nodes.assign(rule.source.nodes.size(), NodeId{-1});
  start_.swapped.assign(rule.source.nodes.size(), false);
  start_.inputs.assign(rule.num_inputs, std::nullopt);
  start_.binding = given;
  start_.binding.inputs.clear();
}

void Matcher::MatchRoot(NodeId root) {
  const int output = FirstRootOf(rule_.source);
  const PatternRef ref = rule_.source.outputs[output];
  if (graph_.node(root).op.kind() != rule_.source.nodes[ref.node].kind ||
      ref.index >= static_cast<int>(graph_.node(root).outputs.size())) {
    return;
  }
  Resume(start_, {{ref, TensorRef{root, ref.index}}});
}

void Matcher::MatchTensor(TensorRef tensor) {
  if (graph_.Contains(tensor)) Resume(start_, {{rule_.source.outputs[0], tensor}});
}

std::vector<DerivationStep> Matcher::TakeSteps() {
  std::vector<DerivationStep> steps;
  for (Found& found : found_) steps.push_back(std::move(found.step));
  found_.clear();
  return steps;
}

int Matcher::NextRoot(const PartialMatch& match) const {
  for (size_t o = 0; o < rule_.source.outputs.size(); ++o) {
    const PatternRef ref = rule_.source.outputs[o];
    if (ref.node >= 0 && match.nodes[ref.node].value < 0) return static_cast<int>(o);
  }
  return -1;
}

void Matcher::Resume(PartialMatch match, std::vector<Obligation> obligations) {
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
  // Many calls share a weight: of what they may be with each other, little is near.
  const bool leads_near = near_ != nullptr && IsLastRoot(match, root) && !HasNearNode(match);
  for (NodeId candidate : RootCandidates(match, ref.node)) {
    if (leads_near && !near_->leads_there[candidate.value]) continue;
    if (ref.index < static_cast<int>(graph_.node(candidate).outputs.size())) {
      Resume(match, {{ref, TensorRef{candidate, ref.index}}});
    }
  }
}

bool Matcher::BindNode(int pattern_node, NodeId id, PartialMatch* match) const {
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
std::vector<NodeId> Matcher::RootCandidates(const PartialMatch& match, int pattern_node) const {
  const PatternNode& node = rule_.source.nodes[pattern_node];
  for (PatternRef ref : node.inputs) {
    std::optional<TensorRef> tensor;
    if (ref.node < 0) {
      tensor = match.inputs[ref.index];
    } else if (match.nodes[ref.node].value >= 0) {
      tensor = TensorRef{match.nodes[ref.node], ref.index};
    }
    if (!tensor.has_value()) continue;
    std::vector<NodeId> users;
    for (const Graph::Use& use : index_.UsersOf(tensor->node)) {
      if (graph_.node(use.user).op.kind() == node.kind) users.push_back(use.user);
    }
    // They are in the order of ids.
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
  }
  return index_.NodesOf(node.kind);
}

bool Matcher::HasNearNode(const PartialMatch& match) const {
  return std::any_of(match.nodes.begin(), match.nodes.end(),
                     [&](NodeId id) { return id.value >= 0 && near_->is_in[id.value]; });
}

bool Matcher::IsLastRoot(const PartialMatch& match, int output) const {
  const std::vector<PatternRef>& outputs = rule_.source.outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](PatternRef ref) {
    return ref.node < 0 || ref.node == outputs[output].node || match.nodes[ref.node].value >= 0;
  });
}

// A product met before one of its factors, as in partition(combine(x; degree=d); degree=d*e), is
// solved now.
bool Matcher::BindFactors(PartialMatch* match) const {
  const bool all_bound = std::all_of(rule_.variables.begin(), rule_.variables.end(),
                                     [&](const RuleVariable& variable) {
                                       return variable.kind != VariableKind::kDegree ||
                                              match->binding.variables.count(variable.name) > 0;
                                     });
  if (all_bound) return true;
  for (size_t n = 0; n < match->nodes.size(); ++n) {
    const Node& node = graph_.node(match->nodes[n]);
    const int rank = graph_.type(node.inputs[0]).rank();
    if (!UnifyAttributes(rule_.source.nodes[n], node.op, rank, &match->binding)) return false;
  }
  return true;
}

// All nodes are bound: types, attributes that had to wait, free axes, conditions.
void Matcher::Finish(PartialMatch match) {
  if (near_ != nullptr && !HasNearNode(match)) return;
  for (const std::optional<TensorRef>& input : match.inputs) {
    if (!input.has_value()) return;  // A variable that the source does not use.
    match.binding.inputs.push_back(graph_.type(*input));
  }
  if (rule_.source.outputs.size() > 1 && DependsOnOutputs(match)) return;
  if (!BindFactors(&match)) return;
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
void Matcher::FinishSplit(const Condition& condition, const PartialMatch& match,
                          const std::vector<std::string>& free_axes) {
  for (const SplittableDim& dim : DimsOf(match, condition.node)) {
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

void Matcher::ChooseAxes(const std::vector<std::string>& free_axes, size_t next,
                         PartialMatch* match) {
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

void Matcher::Emit(const PartialMatch& match) {
  uint64_t signature = 0;
  if (memo_ == nullptr) {
    if (!Holds(match)) return;
  } else {
    signature = SignatureOf(match);
    const auto [known, added] = memo_->admitted.try_emplace(signature, false);
    if (added) known->second = Holds(match);
    if (!known->second) return;
  }
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
  found_.push_back({std::move(step), signature});
}

// Attributes that had to wait agree, and the conditions hold.
bool Matcher::Holds(const PartialMatch& match) const {
  for (size_t n = 0; n < match.nodes.size(); ++n) {
    const Node& node = graph_.node(match.nodes[n]);
    if (!AttributesAgree(rule_.source.nodes[n], node.op, graph_.type(node.inputs[0]).rank(),
                         match.binding)) {
      return false;
    }
  }
  return Admits(rule_, match.binding, [&](int node) { return CallOf(match, node); });
}

// Rules are told apart by where they are: a memo is of one run.
uint64_t Matcher::SignatureOf(const PartialMatch& match) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(&rule_);
  for (size_t n = 0; n < match.nodes.size(); ++n) {
    hash = HashCombine(hash, CallHashOf(match.nodes[n]), match.swapped[n]);
  }
  for (const auto& [name, value] : match.binding.variables) {
    hash = HashCombine(hash, static_cast<uint64_t>(value));
  }
  return hash;
}

uint64_t Matcher::CallHashOf(NodeId id) const {
  uint64_t& hash = (*call_hashes_)[id.value];
  if (hash == 0) hash = HashOfCall(graph_, id);
  return hash;
}

Matcher::Call Matcher::CallOf(const PartialMatch& match, int n) const {
  const Node& node = graph_.node(match.nodes[n]);
  std::vector<TensorType> types;
  for (TensorRef input : node.inputs) types.push_back(graph_.type(input));
  if (match.swapped[n]) std::swap(types[0], types[1]);
  return {node.op, types};
}

std::vector<SplittableDim> Matcher::DimsOf(const PartialMatch& match, int n) const {
  const auto dims = [&] {
    const auto [op, operands] = CallOf(match, n);
    return SplittableDims(op, operands);
  };
  if (memo_ == nullptr) return dims();
  const uint64_t key = HashCombine(CallHashOf(match.nodes[n]), match.swapped[n]);
  const auto [known, added] = memo_->dims.try_emplace(key);
  if (added) known->second = dims();
  return known->second;
}

// True if a rule input is computed from a source output: the rewrite would close a cycle.
bool Matcher::DependsOnOutputs(const PartialMatch& match) {
  int first_root = graph_.num_nodes();
  for (PatternRef ref : rule_.source.outputs) {
    if (ref.node >= 0) first_root = std::min(first_root, index_.PositionOf(match.nodes[ref.node]));
  }
  for (const std::optional<TensorRef>& input : match.inputs) {
    // What comes before every root depends on none.
    if (index_.PositionOf(input->node) < first_root) continue;
    const std::vector<bool>& sources = SourcesOf(input->node);
    for (PatternRef ref : rule_.source.outputs) {
      if (ref.node >= 0 && sources[match.nodes[ref.node].value]) return true;
    }
  }
  return false;
}

const std::vector<bool>& Matcher::SourcesOf(NodeId id) {
  const auto [known, added] = sources_.try_emplace(id);
  if (!added) return known->second;
  std::vector<bool>& sources = known->second;
  sources.resize(graph_.num_nodes(), false);
  sources[id.value] = true;
  std::vector<NodeId> stack = {id};
  while (!stack.empty()) {
    const Node& node = graph_.node(stack.back());
    stack.pop_back();
    for (TensorRef input : node.inputs) {
      if (sources[input.node.value]) continue;
      sources[input.node.value] = true;
      stack.push_back(input.node);
    }
  }
  return sources;
}

}  // namespace isomer
