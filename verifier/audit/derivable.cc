#include "verifier/audit/derivable.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "rules/matching/rewrite.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

// Equal for graphs that compute the same terms; operands of Add and Mul have no order, as for the
// matcher.
uint64_t TermHash(const Graph& graph) {
  std::vector<uint64_t> terms(graph.num_nodes(), 0);
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    std::vector<uint64_t> operands;
    for (const TensorRef& input : node.inputs) {
      operands.push_back(HashCombine(terms[input.node.value], input.output));
    }
    if (IsCommutative(node.op.kind())) std::sort(operands.begin(), operands.end());
    uint64_t term = IsLeaf(node.op.kind()) ? HashBytes(node.name) : node.op.Hash();
    for (uint64_t operand : operands) term = HashCombine(term, operand);
    terms[id.value] = term;
  }
  uint64_t hash = 0;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    hash = HashCombine(hash, terms[output.tensor.node.value], output.tensor.output);
  }
  return hash;
}

OpKindSet KindsOf(const Graph& graph) {
  OpKindSet kinds;
  for (NodeId id : graph.TopologicalOrder()) {
    const OpKind kind = graph.node(id).op.kind();
    if (!IsLeaf(kind)) kinds.set(static_cast<size_t>(kind));
  }
  return kinds;
}

OpKindSet KindsOf(const Pattern& pattern) {
  OpKindSet kinds;
  for (const PatternNode& node : pattern.nodes) kinds.set(static_cast<size_t>(node.kind));
  return kinds;
}

void AddDegrees(const Graph& graph, std::set<int64_t>* degrees) {
  for (NodeId id : graph.TopologicalOrder()) {
    if (const AttributeValue* degree = graph.node(id).op.Find("degree")) {
      degrees->insert(std::get<int64_t>(*degree));
    }
  }
}

bool Uses(const Pattern& pattern, const std::string& variable) {
  for (const PatternNode& node : pattern.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr && (expr->variable == variable || expr->factor == variable)) return true;
    }
  }
  return false;
}

// A rule with what its target introduces: degrees of the two graphs.
struct Move {
  const Rule* rule;
  OpKindSet source_kinds;
  std::vector<Binding> given;
};

std::vector<Move> MovesWithin(const RuleSet& rules, const OpKindSet& kinds,
                              const std::set<int64_t>& degrees) {
  std::vector<Move> moves;
  for (const std::vector<Rule>* list : {&rules.rules, &rules.inverses()}) {
    for (const Rule& rule : *list) {
      if ((KindsOf(rule.target) & ~kinds).any() || (KindsOf(rule.source) & ~kinds).any()) continue;
      std::vector<Binding> given(1);
      for (const RuleVariable& variable : rule.variables) {
        if (variable.kind != VariableKind::kDegree || Uses(rule.source, variable.name)) continue;
        std::vector<Binding> more;
        for (const Binding& binding : given) {
          for (int64_t degree : degrees) {
            more.push_back(binding);
            more.back().variables[variable.name] = degree;
          }
        }
        given = std::move(more);
      }
      moves.push_back({&rule, KindsOf(rule.source), std::move(given)});
    }
  }
  return moves;
}

// What is reached from one side, a step further each time.
class Front {
 public:
  Front(const Graph& start, const std::vector<Move>* moves) : moves_(moves) {
    steps_[TermHash(start)] = {};
    newest_.push_back(start.Canonical());
  }

  size_t size() const { return steps_.size(); }
  size_t breadth() const { return newest_.size(); }
  const std::vector<std::string>* StepsTo(uint64_t hash) const {
    const auto found = steps_.find(hash);
    return found == steps_.end() ? nullptr : &found->second;
  }

  // Takes a step from each of the newest graphs; stops at one that `other` has reached, whose hash
  // it returns.
  std::optional<uint64_t> Advance(const Front& other, size_t max_graphs) {
    std::vector<Graph> from;
    std::swap(from, newest_);
    for (const Graph& graph : from) {
      const std::vector<std::string> so_far = steps_[TermHash(graph)];
      const GraphIndex index(graph);
      const OpKindSet kinds = KindsOf(graph);
      for (const Move& move : *moves_) {
        if ((move.source_kinds & ~kinds).any()) continue;
        for (const Binding& given : move.given) {
          for (const DerivationStep& step : FindMatches(index, *move.rule, given)) {
            Graph next = graph;
            if (!ApplyStep(*move.rule, step, &next).ok()) continue;
            const uint64_t hash = TermHash(next);
            if (steps_.contains(hash)) continue;
            std::vector<std::string> steps = so_far;
            steps.push_back(move.rule->id);
            steps_[hash] = std::move(steps);
            if (other.steps_.contains(hash)) return hash;
            newest_.push_back(next.Canonical());
            if (steps_.size() >= max_graphs) return std::nullopt;
          }
        }
      }
    }
    return std::nullopt;
  }

 private:
  const std::vector<Move>* moves_;
  absl::flat_hash_map<uint64_t, std::vector<std::string>> steps_;
  std::vector<Graph> newest_;
};

// The steps that lead from `source` to `target`, at most max_steps of them.
std::optional<std::vector<std::string>> ShortDerivation(const std::vector<Move>& moves,
                                                        const Graph& source, const Graph& target,
                                                        const DerivationLimits& limits) {
  Front fronts[2] = {Front(source, &moves), Front(target, &moves)};
  for (int step = 0; step < limits.max_steps; ++step) {
    const size_t reached = fronts[0].size() + fronts[1].size();
    if (reached >= static_cast<size_t>(limits.max_graphs)) break;
    const int side = fronts[0].breadth() <= fronts[1].breadth() ? 0 : 1;
    if (fronts[side].breadth() == 0) break;
    const std::optional<uint64_t> met =
        fronts[side].Advance(fronts[1 - side], fronts[side].size() + limits.max_graphs - reached);
    if (!met) continue;
    std::vector<std::string> steps = *fronts[0].StepsTo(*met);
    std::vector<std::string> back = *fronts[1].StepsTo(*met);
    std::reverse(back.begin(), back.end());
    for (const std::string& id : back) steps.push_back(absl::StrCat(id, " from the target"));
    return steps;
  }
  return std::nullopt;
}

bool Types(const Rule& rule, const Binding& binding) {
  return Admits(rule, binding) && InstantiatePattern(rule.source, binding).ok() &&
         InstantiatePattern(rule.target, binding).ok();
}

}  // namespace

std::optional<RulesUsed> Derivation(const RuleSet& rules, const Graph& source, const Graph& target,
                                    const DerivationLimits& limits) {
  if (TermHash(source) == TermHash(target)) return RulesUsed();
  std::set<int64_t> degrees;
  AddDegrees(source, &degrees);
  AddDegrees(target, &degrees);
  const std::vector<Move> moves = MovesWithin(rules, KindsOf(source) | KindsOf(target), degrees);
  if (auto steps = ShortDerivation(moves, source, target, limits)) return RulesUsed{*steps};
  std::vector<const Rule*> equations;
  for (const Move& move : moves) equations.push_back(move.rule);
  auto ids = EqualBySaturation(equations, {degrees.begin(), degrees.end()}, source, target,
                               limits.saturation);
  if (!ids) return std::nullopt;
  return RulesUsed{*std::move(ids), /*by_saturation=*/true};
}

std::optional<Binding> RepresentativeInstance(const Rule& rule) {
  std::vector<Binding> bindings;
  if (const auto instances = InstancesOf(rule); instances.ok() && !instances->empty()) {
    // The first is the one without broadcasting.
    for (uint64_t seed : {1, 2, 3}) {
      for (Binding& binding : SmallBindings(instances->front(), 4, seed)) {
        bindings.push_back(std::move(binding));
      }
    }
  } else {
    bindings = RepresentativeBindings(rule);
  }
  auto ones = [](const Binding& binding) {
    int count = 0;
    for (const TensorType& type : binding.inputs) {
      for (const Dim& dim : type.dims) count += dim.size == 1;
    }
    return count;
  };
  const Binding* best = nullptr;
  for (const Binding& binding : bindings) {
    if (Types(rule, binding) && (best == nullptr || ones(binding) < ones(*best))) best = &binding;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

}  // namespace isomer
