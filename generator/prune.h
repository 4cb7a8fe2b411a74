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

  // True if one application of a rule (or of an inverse) turns the source into the target.
  bool IsInstance(const CandidateGraphs& candidate) const;
  // True if two applications do, by way of any graph: one on either side is tried.
  bool IsComposition(const CandidateGraphs& candidate) const;

 private:
  struct Entry {
    Rule rule;
    OpKindSet kinds;             // of the source
    std::vector<Binding> given;  // values of the degrees that it introduces
  };
  // Hashes of the graphs that one application makes of `graph`, and its own.
  std::vector<uint64_t> Reachable(const Graph& graph) const;

  std::vector<Entry> rules_;  // both directions of reversible ones
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PRUNE_H_
