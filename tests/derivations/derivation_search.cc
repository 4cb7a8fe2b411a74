// Best-first search over whole graphs. How far a graph is from the goal is counted in what the two
// do not share: calls (operator, attributes, output types) and uses (a call and what feeds it).
// A step changes a few of these, so the count falls along a chain, and a short chain is found
// without a cost model. What the goal computes already, from the leaves on, is left as it is.
#include "tests/derivations/derivation_search.h"

#include <algorithm>
#include <iterator>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "rules/matching/rewrite.h"

namespace isomer {
namespace {

uint64_t TypeHash(const TensorType& type) {
  uint64_t hash = HashCombine(static_cast<uint64_t>(type.dtype), type.copies, type.partials,
                              type.micro_batches);
  for (const Dim& dim : type.dims) hash = HashCombine(hash, dim.size, dim.degree);
  return hash;
}

// What a graph is made of. Equal calls on equal operands are one, and the operands of Add and Mul
// have no order: what a matcher does not tell apart is not told apart here.
struct Fingerprint {
  uint64_t hash = 0;                    // of all outputs, by their terms
  std::vector<uint64_t> features;       // sorted
  std::vector<uint64_t> term_of_node;   // 0 where dead
  absl::flat_hash_set<uint64_t> terms;  // of live nodes
};

Fingerprint FingerprintOf(const Graph& graph) {
  Fingerprint print;
  print.term_of_node.assign(graph.num_nodes(), 0);
  std::vector<uint64_t> labels(graph.num_nodes(), 0);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    uint64_t label = IsLeaf(node.op.kind()) ? HashBytes(node.name) : node.op.Hash();
    for (const TensorType& type : node.outputs) label = HashCombine(label, TypeHash(type));
    labels[id.value] = label;
    const bool commutes = node.op.kind() == OpKind::kAdd || node.op.kind() == OpKind::kMul;
    std::vector<uint64_t> operands, uses;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorRef input = node.inputs[i];
      operands.push_back(HashCombine(print.term_of_node[input.node.value], input.output));
      uses.push_back(HashCombine(label, commutes ? 0 : i, input.output, labels[input.node.value]));
    }
    if (commutes) std::sort(operands.begin(), operands.end());
    uint64_t term = label;
    for (uint64_t operand : operands) term = HashCombine(term, operand);
    print.term_of_node[id.value] = term;
    if (!print.terms.insert(term).second) continue;
    print.features.push_back(label);
    print.features.insert(print.features.end(), uses.begin(), uses.end());
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const int node = output.tensor.node.value;
    const uint64_t name = HashCombine(HashBytes(output.name), output.tensor.output);
    print.hash = HashCombine(print.hash, name, print.term_of_node[node]);
    print.features.push_back(HashCombine(name, labels[node]));
  }
  std::sort(print.features.begin(), print.features.end());
  return print;
}

// Elements of either sorted list that the other lacks.
int Differences(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<uint64_t> differ;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(differ));
  return static_cast<int>(differ.size());
}

// What a goal says of the values that a target may introduce.
struct Vocabulary {
  OpKindSet kinds;
  std::set<int64_t> degrees;
  std::set<std::vector<int64_t>> sizes;  // of Splits
};

void AddVocabulary(const Graph& graph, Vocabulary* vocabulary) {
  for (NodeId id : graph.TopologicalOrder()) {
    const Operator& op = graph.node(id).op;
    vocabulary->kinds.set(static_cast<int>(op.kind()));
    if (const AttributeValue* degree = op.Find("degree")) {
      vocabulary->degrees.insert(std::get<int64_t>(*degree));
    }
    if (op.kind() != OpKind::kSplit) continue;
    std::vector<int64_t> sizes;
    for (const Extent& size : op.Extents("sizes")) sizes.push_back(size.value());
    vocabulary->sizes.insert(sizes);
  }
}

// Names of variables of a side, and the lists of size variables of its Splits.
struct SideVariables {
  std::set<std::string> names;
  std::vector<std::vector<std::string>> sizes;
};

SideVariables VariablesOf(const Pattern& pattern) {
  SideVariables found;
  auto add = [&](const IntExpr& expr) {
    for (const std::string& name : {expr.variable, expr.factor}) {
      if (!name.empty()) found.names.insert(name);
    }
  };
  for (const PatternNode& node : pattern.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      if (auto* expr = std::get_if<IntExpr>(&attribute.value)) add(*expr);
      if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
        std::vector<std::string> names;
        for (const IntExpr& item : *list) {
          add(item);
          if (item.kind == IntExpr::Kind::kVariable) names.push_back(item.variable);
        }
        if (names.size() == list->size()) found.sizes.push_back(names);
      }
    }
  }
  return found;
}

// The bindings of what the target introduces, to be given to the matcher.
std::vector<Binding> GivenTo(const Rule& rule, const Vocabulary& vocabulary) {
  const SideVariables source = VariablesOf(rule.source), target = VariablesOf(rule.target);
  std::vector<Binding> given(1);
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind != VariableKind::kDegree || source.names.count(variable.name) > 0) continue;
    std::vector<Binding> more;
    for (const Binding& binding : given) {
      for (int64_t degree : vocabulary.degrees) {
        more.push_back(binding);
        more.back().variables[variable.name] = degree;
      }
    }
    given = std::move(more);
  }
  for (const std::vector<std::string>& names : target.sizes) {
    if (source.names.count(names[0]) > 0) continue;
    std::vector<Binding> more;
    for (const Binding& binding : given) {
      for (const std::vector<int64_t>& sizes : vocabulary.sizes) {
        if (sizes.size() != names.size()) continue;
        more.push_back(binding);
        for (size_t i = 0; i < names.size(); ++i) more.back().variables[names[i]] = sizes[i];
      }
    }
    given = std::move(more);
  }
  return given;
}

OpKindSet KindsOf(const Pattern& pattern) {
  OpKindSet kinds;
  for (const PatternNode& node : pattern.nodes) kinds.set(static_cast<int>(node.kind));
  return kinds;
}

struct Move {
  const Rule* rule;
  OpKindSet source_kinds;
  std::vector<Binding> given;
};

std::vector<Move> MovesWithin(const RuleSet& rules, const Vocabulary& vocabulary) {
  std::vector<Move> moves;
  for (const std::vector<Rule>* list : {&rules.rules, &rules.inverses()}) {
    for (const Rule& rule : *list) {
      if ((KindsOf(rule.target) & ~vocabulary.kinds).any()) continue;
      moves.push_back({&rule, KindsOf(rule.source), GivenTo(rule, vocabulary)});
    }
  }
  return moves;
}

struct State {
  Graph graph;  // as the steps leave it
  std::vector<DerivationStep> steps;
  int differences;
  std::vector<uint64_t> term_of_node;
};

class Search {
 public:
  Search(const RuleSet& rules, const Graph& start, const Graph& goal, const SearchLimits& limits)
      : limits_(limits), goal_(FingerprintOf(goal)) {
    Vocabulary vocabulary;
    AddVocabulary(start, &vocabulary);
    vocabulary.degrees.clear();
    vocabulary.sizes.clear();
    AddVocabulary(goal, &vocabulary);
    // What expansions put between calls, and what cancels.
    if (!vocabulary.degrees.empty()) {
      for (OpKind kind : {OpKind::kPartition, OpKind::kCombine}) {
        vocabulary.kinds.set(static_cast<int>(kind));
      }
    }
    moves_ = MovesWithin(rules, vocabulary);
    max_nodes_ =
        std::max(FingerprintOf(start).terms.size(), goal_.terms.size()) + limits.extra_nodes;
    Reach(start, {});
  }

  absl::StatusOr<State> Run() {
    int expanded = 0;
    while (goal_state_ < 0 && !queue_.empty() && expanded++ < limits_.expansions) {
      const int next = -std::get<2>(queue_.top());
      queue_.pop();
      Expand(next);
    }
    if (goal_state_ >= 0) return states_[goal_state_];
    const auto nearest = std::min_element(
        states_.begin(), states_.end(),
        [](const State& a, const State& b) { return a.differences < b.differences; });
    return absl::NotFoundError(
        absl::StrCat(queue_.empty() ? "every graph" : "the limit of graphs", " was tried (",
                     expanded, " of ", states_.size(), " reached); the nearest differs in ",
                     nearest->differences, " places:\n", nearest->graph.Canonical().ToString()));
  }

 private:
  void Expand(int index) {
    const Graph graph = states_[index].graph;
    const std::vector<DerivationStep> steps = states_[index].steps;
    const GraphIndex graph_index(graph);
    OpKindSet kinds;
    for (NodeId id : graph.TopologicalOrder()) {
      kinds.set(static_cast<int>(graph.node(id).op.kind()));
    }
    for (const Move& move : moves_) {
      if ((move.source_kinds & ~kinds).any()) continue;
      for (const Binding& given : move.given) {
        for (DerivationStep& step : FindMatches(graph_index, *move.rule, given)) {
          if (IsDone(step, states_[index].term_of_node)) continue;
          Graph next = graph;
          if (!ApplyStep(*move.rule, step, &next).ok()) continue;
          std::vector<DerivationStep> next_steps = steps;
          next_steps.push_back(std::move(step));
          Reach(std::move(next), std::move(next_steps));
          if (goal_state_ >= 0) return;
        }
      }
    }
  }

  // The goal has every call that the step would replace.
  bool IsDone(const DerivationStep& step, const std::vector<uint64_t>& term_of_node) const {
    return !step.nodes.empty() && std::all_of(step.nodes.begin(), step.nodes.end(), [&](NodeId id) {
      return goal_.terms.contains(term_of_node[id.value]);
    });
  }

  void Reach(Graph graph, std::vector<DerivationStep> steps) {
    Fingerprint print = FingerprintOf(graph);
    if (!seen_.insert(print.hash).second || print.terms.size() > max_nodes_) return;
    const int differences = Differences(print.features, goal_.features);
    const int index = static_cast<int>(states_.size());
    if (print.hash == goal_.hash) goal_state_ = index;
    const int length = static_cast<int>(steps.size());
    queue_.push({-(length + differences), length, -index});
    states_.push_back(
        {std::move(graph), std::move(steps), differences, std::move(print.term_of_node)});
  }

  const SearchLimits limits_;
  const Fingerprint goal_;
  std::vector<Move> moves_;
  size_t max_nodes_ = 0;
  std::vector<State> states_;
  std::priority_queue<std::tuple<int, int, int>> queue_;  // -(steps + differences), steps, -index
  absl::flat_hash_set<uint64_t> seen_;
  int goal_state_ = -1;
};

}  // namespace

bool SameGraph(const Graph& a, const Graph& b) {
  return FingerprintOf(a).hash == FingerprintOf(b).hash;
}

absl::StatusOr<std::vector<DerivationStep>> Derive(const RuleSet& rules, const Graph& goal,
                                                   const SearchLimits& limits, Graph* graph) {
  absl::StatusOr<State> found = Search(rules, *graph, goal, limits).Run();
  if (!found.ok()) return found.status();
  *graph = std::move(found->graph);
  return std::move(found->steps);
}

}  // namespace isomer
