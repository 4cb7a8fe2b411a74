// Best-first search over whole graphs. How far a graph is from the goal is counted in what the two
// do not share: calls (operator, attributes, output types) and uses (a call and what feeds it).
// A step changes a few of these, so the count falls along a chain, and a short chain is found
// without a cost model.
#include "tests/derivations/derivation_search.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"
#include "rules/rewrite.h"

namespace isomer {
namespace {

using Features = std::map<uint64_t, int>;

uint64_t LabelOf(const Node& node) {
  uint64_t label = HashCombine(node.op.Hash(), IsLeaf(node.op.kind()) ? HashBytes(node.name) : 0);
  for (const TensorType& type : node.outputs)
    label = HashCombine(label, HashBytes(type.ToString()));
  return label;
}

Features FeaturesOf(const Graph& graph) {
  Features features;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const uint64_t label = LabelOf(node);
    ++features[label];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorRef input = node.inputs[i];
      ++features[HashCombine(label, i, input.output, LabelOf(graph.node(input.node)))];
    }
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    ++features[HashCombine(HashBytes(output.name), output.tensor.output,
                           LabelOf(graph.node(output.tensor.node)))];
  }
  return features;
}

int Differences(const Features& a, const Features& b) {
  int count = 0;
  for (const auto& [feature, times] : a) {
    const auto other = b.find(feature);
    count += std::abs(times - (other == b.end() ? 0 : other->second));
  }
  for (const auto& [feature, times] : b) count += a.count(feature) == 0 ? times : 0;
  return count;
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

struct Move {
  const Rule* rule;
  std::vector<Binding> given;
};

std::vector<Move> MovesWithin(const RuleSet& rules, const Vocabulary& vocabulary) {
  std::vector<Move> moves;
  for (const std::vector<Rule>* list : {&rules.rules, &rules.inverses()}) {
    for (const Rule& rule : *list) {
      const bool within = std::all_of(rule.target.nodes.begin(), rule.target.nodes.end(),
                                      [&](const PatternNode& node) {
                                        return vocabulary.kinds.test(static_cast<int>(node.kind));
                                      });
      if (within) moves.push_back({&rule, GivenTo(rule, vocabulary)});
    }
  }
  return moves;
}

struct State {
  Graph graph;  // as the steps leave it
  std::vector<DerivationStep> steps;
  int differences;
};

int LiveNodes(const Graph& graph) { return static_cast<int>(graph.TopologicalOrder().size()); }

class Search {
 public:
  Search(const RuleSet& rules, const Graph& start, const Graph& goal, const SearchLimits& limits)
      : limits_(limits), goal_hash_(goal.StructuralHash()), goal_(FeaturesOf(goal.Canonical())) {
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
    max_nodes_ = std::max(LiveNodes(start), LiveNodes(goal)) + limits.extra_nodes;
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
    for (const Move& move : moves_) {
      for (const Binding& given : move.given) {
        for (DerivationStep& step : FindMatches(graph_index, *move.rule, given)) {
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

  void Reach(Graph graph, std::vector<DerivationStep> steps) {
    const Graph canonical = graph.Canonical();
    const uint64_t hash = canonical.StructuralHash();
    if (!seen_.insert(hash).second || canonical.num_nodes() > max_nodes_) return;
    const int differences = Differences(FeaturesOf(canonical), goal_);
    const int index = static_cast<int>(states_.size());
    if (hash == goal_hash_) goal_state_ = index;
    queue_.push(
        {-(static_cast<int>(steps.size()) + differences), static_cast<int>(steps.size()), -index});
    states_.push_back({std::move(graph), std::move(steps), differences});
  }

  const SearchLimits limits_;
  const uint64_t goal_hash_;
  const Features goal_;
  std::vector<Move> moves_;
  int max_nodes_ = 0;
  std::vector<State> states_;
  std::priority_queue<std::tuple<int, int, int>> queue_;  // -(steps + differences), steps, -index
  absl::flat_hash_set<uint64_t> seen_;
  int goal_state_ = -1;
};

}  // namespace

absl::StatusOr<std::vector<DerivationStep>> Derive(const RuleSet& rules, const Graph& goal,
                                                   const SearchLimits& limits, Graph* graph) {
  absl::StatusOr<State> found = Search(rules, *graph, goal, limits).Run();
  if (!found.ok()) return found.status();
  *graph = std::move(found->graph);
  return std::move(found->steps);
}

}  // namespace isomer
