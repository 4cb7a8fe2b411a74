#include "generator/prune.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

OpKindSet SetOf(OpKind kind) { return OpKindSet().set(static_cast<size_t>(kind)); }

// Assignments of the degrees that a rule introduces: those that generation uses.
std::vector<Binding> GivenDegrees(const Rule& rule) {
  Binding two, four;
  std::set<std::string> bound;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr) bound.insert({expr->variable, expr->factor});
    }
  }
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree && bound.count(variable.name) == 0) {
      two.variables[variable.name] = 2;
      four.variables[variable.name] = 4;
    }
  }
  if (two.variables.empty()) return {two};
  return {two, four};
}

}  // namespace

absl::StatusOr<CandidateGraphs> GraphsOf(const Candidate& candidate) {
  Binding binding;
  binding.inputs = candidate.inputs;
  CandidateGraphs graphs;
  ISOMER_ASSIGN_OR_RETURN(graphs.source, InstantiatePattern(candidate.source, binding));
  ISOMER_ASSIGN_OR_RETURN(graphs.target, InstantiatePattern(candidate.target, binding));
  graphs.source = graphs.source.Canonical();
  graphs.target = graphs.target.Canonical();
  return graphs;
}

void RuleBook::Add(const Rule& rule) {
  auto add = [this](const Rule& one) {
    OpKindSet kinds;
    for (const PatternNode& node : one.source.nodes) kinds |= SetOf(node.kind);
    rules_.push_back({one, kinds, GivenDegrees(one)});
  };
  add(rule);
  if (rule.reversible) add(Inverse(rule));
}

std::vector<uint64_t> RuleBook::Reachable(const Graph& graph) const {
  std::vector<uint64_t> hashes = {graph.StructuralHash()};
  OpKindSet kinds;
  for (int id = 0; id < graph.num_nodes(); ++id) kinds |= SetOf(graph.node(id).op.kind());
  const GraphIndex index(graph);
  for (const Entry& entry : rules_) {
    if ((entry.kinds & ~kinds).any()) continue;
    for (const Binding& given : entry.given) {
      for (const DerivationStep& step : FindMatches(index, entry.rule, given)) {
        Graph next = graph;
        if (ApplyStep(entry.rule, step, &next).ok()) hashes.push_back(next.StructuralHash());
      }
    }
  }
  return hashes;
}

bool RuleBook::IsInstance(const CandidateGraphs& candidate) const {
  const std::vector<uint64_t> reachable = Reachable(candidate.source);
  return std::find(reachable.begin(), reachable.end(), candidate.target.StructuralHash()) !=
         reachable.end();
}

bool RuleBook::IsComposition(const CandidateGraphs& candidate) const {
  const std::vector<uint64_t> from_source = Reachable(candidate.source);
  const absl::flat_hash_set<uint64_t> reachable(from_source.begin(), from_source.end());
  for (uint64_t hash : Reachable(candidate.target)) {
    if (reachable.contains(hash)) return true;
  }
  return false;
}

}  // namespace isomer
