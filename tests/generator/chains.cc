#include "tests/generator/chains.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

bool Commutes(OpKind kind) { return kind == OpKind::kAdd || kind == OpKind::kMul; }

// Of the term that a tensor is, whatever is shared.
uint64_t TermHash(const Graph& graph, TensorRef ref) {
  const Node& node = graph.node(ref.node);
  if (IsLeaf(node.op.kind())) return HashBytes(node.name);
  std::vector<uint64_t> operands;
  for (TensorRef input : node.inputs) operands.push_back(TermHash(graph, input));
  if (Commutes(node.op.kind())) std::sort(operands.begin(), operands.end());
  uint64_t hash = HashCombine(node.op.Hash(), static_cast<uint64_t>(ref.output));
  for (uint64_t operand : operands) hash = HashCombine(hash, operand);
  return hash;
}

// A copy of a graph of one output in which calls that `apart` names have a node for every use;
// calls of several outputs stay one node.
class Copier {
 public:
  Copier(const Graph& graph, std::function<bool(int)> apart)
      : graph_(graph), apart_(std::move(apart)) {}
  Graph Copy() {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      if (IsLeaf(node.op.kind())) kept_[id] = copy_.AddInput(node.name, node.outputs[0]).node;
    }
    copy_.AddOutput("y0", At(graph_.outputs()[0].tensor));
    return std::move(copy_);
  }

 private:
  TensorRef At(TensorRef ref) {
    const int id = ref.node.value;
    if (const auto found = kept_.find(id); found != kept_.end()) {
      return {found->second, ref.output};
    }
    const Node& node = graph_.node(id);
    std::vector<TensorRef> operands;
    for (TensorRef input : node.inputs) operands.push_back(At(input));
    const auto added = copy_.Add(node.op, operands);
    ISOMER_CHECK(added.ok());
    if (node.outputs.size() > 1 || !apart_(id)) kept_[id] = *added;
    return {*added, ref.output};
  }

  const Graph& graph_;
  const std::function<bool(int)> apart_;
  std::map<int, NodeId> kept_;
  Graph copy_;
};

// Nodes of a pattern match different nodes, and inputs of a rule may be one tensor: then nodes of
// the pattern may be equal, and match where equal nodes are kept apart. So a graph is tried with
// equal nodes merged, with all of them apart, and with one of them.
std::vector<Graph> FormsOf(const Graph& graph) {
  std::vector<Graph> forms = {graph};
  const std::vector<std::vector<Graph::Use>> users = graph.Users();
  int several = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || node.outputs.size() > 1 || users[id].size() < 2) continue;
    ++several;
    forms.push_back(Copier(graph, [id](int other) { return other == id; }).Copy());
  }
  if (several > 1) forms.push_back(Copier(graph, [](int) { return true; }).Copy());
  return forms;
}

// Values for the degrees that a rule's target introduces.
std::vector<Binding> Given(const Rule& rule) {
  std::set<std::string> bound;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      if (const auto* expr = std::get_if<IntExpr>(&attribute.value)) {
        bound.insert({expr->variable, expr->factor});
      }
    }
  }
  Binding two;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree && bound.count(variable.name) == 0) {
      two.variables[variable.name] = 2;
    }
  }
  return {two};
}

}  // namespace

Chains::Chains(const std::vector<Rule>& rules) {
  auto add = [this](const Rule& rule) {
    OpKindSet kinds;
    for (const PatternNode& node : rule.source.nodes) kinds.set(static_cast<size_t>(node.kind));
    rules_.push_back({rule, kinds, Given(rule)});
  };
  for (const Rule& rule : rules) {
    add(rule);
    if (rule.reversible) add(Inverse(rule));
  }
}

int Chains::Add(const Graph& graph) {
  const uint64_t hash = TermHash(graph, graph.outputs()[0].tensor);
  const auto [entry, fresh] = numbers_.try_emplace(hash, size());
  if (fresh) {
    parent_.push_back(size());
    members_.push_back({size()});
    graphs_.push_back(graph.Canonical());
    expanded_.push_back(false);
    successors_.emplace_back();
  }
  return entry->second;
}

int Chains::Root(int graph) {
  while (parent_[graph] != graph) graph = parent_[graph] = parent_[parent_[graph]];
  return graph;
}

void Chains::Link(int a, int b) {
  a = Root(a), b = Root(b);
  if (a == b) return;
  if (members_[a].size() < members_[b].size()) std::swap(a, b);
  parent_[b] = a;
  members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
  members_[b].clear();
}

bool Chains::Linked(int a, int b) { return Root(a) == Root(b); }

void Chains::Expand(int graph) {
  if (expanded_[graph]) return;
  expanded_[graph] = true;
  for (const Graph& form : FormsOf(graphs_[graph])) ExpandForm(graph, form);
}

void Chains::ExpandForm(int graph, const Graph& form) {
  OpKindSet kinds;
  for (int id = 0; id < form.num_nodes(); ++id) {
    kinds.set(static_cast<size_t>(form.node(id).op.kind()));
  }
  const GraphIndex index(form);
  for (const Entry& entry : rules_) {
    if ((entry.kinds & ~kinds).any()) continue;
    for (const Binding& given : entry.given) {
      for (const DerivationStep& step : FindMatches(index, entry.rule, given)) {
        Graph next = form;
        if (!ApplyStep(entry.rule, step, &next).ok()) continue;
        const int number = Add(next);
        successors_[graph].push_back(number);
        Link(graph, number);
      }
    }
  }
}

int Chains::NextToExpand(const std::vector<int>& graphs) const {
  int best = -1;
  for (int graph : graphs) {
    if (expanded_[graph]) continue;
    if (best < 0 || graphs_[graph].num_nodes() < graphs_[best].num_nodes()) best = graph;
  }
  return best;
}

bool Chains::Search(int a, int b, int most) {
  for (int i = 0; i < most && !Linked(a, b); ++i) {
    const int next_a = NextToExpand(members_[Root(a)]), next_b = NextToExpand(members_[Root(b)]);
    if (next_a < 0 && next_b < 0) break;
    if (next_a >= 0) Expand(next_a);
    if (next_b >= 0) Expand(next_b);
  }
  return Linked(a, b);
}

bool Chains::Reaches(int from, int to, int most) {
  for (int i = 0;; ++i) {
    std::vector<int> reached = {from};
    absl::flat_hash_set<int> seen = {from};
    for (size_t at = 0; at < reached.size(); ++at) {
      for (int next : successors_[reached[at]]) {
        if (seen.insert(next).second) reached.push_back(next);
      }
    }
    if (seen.contains(to)) return true;
    const int next = i < most ? NextToExpand(reached) : -1;
    if (next < 0) return false;
    Expand(next);
  }
}

}  // namespace isomer
