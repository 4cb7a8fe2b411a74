// Level 2: best-first search over algebraic substitutions of one piece (Unity, OSDI'22, section 5;
// the pruning by alpha is TASO's, SOSP'19).
//
// A candidate's cost is its best mapping (level 3), so that algebra is judged under the parallelism
// that suits it: a merge that saves launches may lose a split. Mapping is what takes time, so a
// step waits in the queue unmapped, at its parent's cost plus an estimate of what the step changes
// (kernels on one device, step_estimate.h), and the most promising of all steps of all candidates
// is mapped next. Candidates above alpha times the best are not expanded.
//
// After a step only matches that touch what the step added are sought; the parent's others are
// kept, under their names: a candidate is a set of steps, and of the orders in which steps that do
// not touch each other can be taken only the first is tried. What remains of equal graphs is found
// by structural hash.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SUBSTITUTION_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SUBSTITUTION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/substitution/piece_mapping.h"
#include "pcg/support/stopping.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

struct SubstitutionOptions {
  double alpha = 1.05;
  // Steps tried for each candidate that is mapped: most lead to graphs seen before.
  int64_t tries_per_candidate = 50;
  uint64_t seed = 1;  // orders steps that look equally good
  Deadline deadline = {};
  bool dynamic_program = true;  // false: mappings are enumerated, until the deadline
  bool concurrent_branches = false;
};

using Steps = std::vector<DerivationStep>;

// The matches of the graphs that searches of a piece begin with: under other costs they are the
// same.
class RootMatches {
 public:
  // Those of the graph that `steps` lead to. They stay.
  const std::vector<RuleMatch>& Of(const GraphIndex& graph, const Steps& steps,
                                   RuleMatcher* matcher) {
    for (const Root& root : roots_) {
      if (root.steps == steps) return root.matches;
    }
    return roots_.emplace_back(Root{steps, matcher->Find(graph)}).matches;
  }

 private:
  struct Root {
    Steps steps;
    std::vector<RuleMatch> matches;
  };
  std::deque<Root> roots_;
};

struct SubstitutionResult {
  struct Candidate {
    Graph graph;
    Steps steps;  // from the piece's own graph
  };
  std::vector<Candidate> candidates;  // those that are best for some border; the first has no step
  CostTable us;                       // least over the candidates
  std::vector<int> best;              // per entry of `us`: the candidate
  int64_t mapped = 0;
  StopReason stop = StopReason::kExhausted;
  bool exact = true;  // of all mappings
};

class SubstitutionSearch {
 public:
  // All outlive this. `matcher`: of the rules to apply. `root_matches`: of pieces that are equal to
  // this one.
  SubstitutionSearch(const Piece& piece, const Borders& borders, const SubstitutionOptions& options,
                     RuleMatcher* matcher, RootMatches* root_matches, CostTables* tables);
  ~SubstitutionSearch();

  // Maps the piece as it is, and candidates known from elsewhere (those that do not apply are left
  // out). To be called first.
  absl::Status Start(const std::vector<Steps>& known);
  // Maps up to `candidates` more.
  absl::Status Continue(int64_t candidates);

  // No step is left, or no time.
  bool Done() const;
  int64_t mapped() const;
  // One number for the piece: what the best candidate costs in a chain of its like.
  double best_us() const;
  // The candidates worth knowing for other costs: best for some border, or among the cheapest.
  std::vector<Steps> Known(int cheapest) const;
  // To be called last.
  SubstitutionResult TakeResult();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SUBSTITUTION_H_
