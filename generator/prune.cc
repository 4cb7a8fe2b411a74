#include "generator/prune.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

int CountOperators(const Graph& graph) {
  int count = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) count += !IsLeaf(graph.node(id).op.kind());
  return count;
}

// Introduced degrees: those that generation uses.
Binding GivenDegrees(const Rule& rule) {
  Binding given;
  std::set<std::string> bound;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* expr = std::get_if<IntExpr>(&attribute.value);
      if (expr != nullptr) bound.insert({expr->variable, expr->factor});
    }
  }
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree && bound.count(variable.name) == 0) {
      given.variables[variable.name] = 2;
    }
  }
  return given;
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
  rules_.push_back(rule);
  if (rule.reversible) rules_.push_back(Inverse(rule));
}

std::vector<Graph> RuleBook::Neighbours(const Graph& graph, int max_nodes) const {
  std::vector<Graph> result;
  const GraphIndex index(graph);
  for (const Rule& rule : rules_) {
    for (const DerivationStep& step : FindMatches(index, rule, GivenDegrees(rule))) {
      Graph next = graph;
      if (!ApplyStep(rule, step, &next).ok()) continue;
      next = next.Canonical();
      if (CountOperators(next) <= max_nodes) result.push_back(std::move(next));
    }
  }
  return result;
}

bool RuleBook::IsInstance(const CandidateGraphs& candidate) const {
  return IsDerivable(candidate, 1, 64);
}

bool RuleBook::IsDerivable(const CandidateGraphs& candidate, int depth, int max_nodes) const {
  constexpr size_t kMostGraphs = 120;
  const uint64_t goal = candidate.target.StructuralHash();
  if (candidate.source.StructuralHash() == goal) return true;
  absl::flat_hash_set<uint64_t> seen = {candidate.source.StructuralHash()};
  std::vector<Graph> frontier = {candidate.source};
  for (int step = 0; step < depth; ++step) {
    std::vector<Graph> next;
    for (const Graph& graph : frontier) {
      for (Graph& neighbour : Neighbours(graph, max_nodes)) {
        const uint64_t hash = neighbour.StructuralHash();
        if (hash == goal) return true;
        if (seen.size() < kMostGraphs && seen.insert(hash).second) {
          next.push_back(std::move(neighbour));
        }
      }
    }
    frontier = std::move(next);
  }
  return false;
}

}  // namespace isomer
