// What a rule set already says: so that nothing is said twice.
#ifndef ISOMER_GENERATOR_PRUNE_H_
#define ISOMER_GENERATOR_PRUNE_H_

#include <optional>
#include <string>
#include <vector>

#include "generator/generalize.h"
#include "rules/rewrite.h"
#include "rules/rule.h"

namespace isomer {

// The two sides of a candidate as graphs, in canonical form.
struct CandidateGraphs {
  Graph source, target;
};
absl::StatusOr<CandidateGraphs> GraphsOf(const Candidate& candidate);

// Rules accepted so far, by the operators they need.
class RuleBook {
 public:
  void Add(const Rule& rule);
  const std::vector<Rule>& rules() const { return rules_; }

  // True if one application of a rule (or of an inverse) turns the source into the target.
  bool IsInstance(const CandidateGraphs& candidate) const;
  // True if at most `depth` applications do, by way of graphs of at most `max_nodes` nodes.
  bool IsDerivable(const CandidateGraphs& candidate, int depth, int max_nodes) const;

 private:
  // The graphs that one application makes of `graph`, canonical.
  std::vector<Graph> Neighbours(const Graph& graph, int max_nodes) const;

  std::vector<Rule> rules_;  // both directions of reversible ones
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PRUNE_H_
