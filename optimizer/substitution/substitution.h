// Level 2: best-first search over algebraic substitutions of one piece (Unity, OSDI'22, section 5;
// the pruning by alpha is TASO's, SOSP'19).
//
// A candidate costs as much as its best mapping (level 3), so that algebra is judged under the
// parallelism that suits it: a merge that saves launches may lose a split. Mapping dominates the
// time, so a step waits in the queue unmapped, at its parent's cost plus an estimate of its gain
// (kernels on one device, step_estimate.h), and the most promising step of all candidates is mapped
// next. Candidates above alpha times the best are not expanded.
//
// After a step only matches that touch new nodes are sought; the parent's others are kept, by name:
// a candidate is a set of steps, and of the orders of independent steps only the first is tried.
// Remaining equal graphs are found by structural hash.
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
  // Steps tried per mapped candidate: most lead to known graphs.
  int64_t tries_per_candidate = 50;
  // Per level of sweeps: candidates whose sweeps are tried, and how many of each.
  size_t swept_candidates = 3, sweeps_of_each = 6;
  uint64_t seed = 1;  // orders steps that look equally good
  Deadline deadline = {};
  bool dynamic_program = true;  // false: mappings are enumerated, until the deadline
  bool concurrent_branches = false;
};

using Steps = std::vector<DerivationStep>;

// Memo of the matches of a piece's starting graphs, which are the same under other costs.
class RootMatches {
 public:
  // Matches of the graph that `steps` lead to. References stay valid.
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
  std::vector<Candidate>
      candidates;         // best for some placements at the borders; the first has no steps
  CostTable us;           // minimum over the candidates
  std::vector<int> best;  // per entry of `us`: its candidate
  int64_t mapped = 0;
  StopReason stop = StopReason::kExhausted;
  bool exact = true;  // all mappings are exact
};

class SubstitutionSearch {
 public:
  // All outlive this. `matcher`: of the rules to apply. `root_matches`: shared by equal pieces.
  SubstitutionSearch(const Piece& piece, const Borders& borders, const SubstitutionOptions& options,
                     RuleMatcher* matcher, RootMatches* root_matches, CostTables* tables);
  ~SubstitutionSearch();

  // Maps the original piece, and candidates known from elsewhere (those that do not apply are
  // skipped). Must be called first.
  absl::Status Start(const std::vector<Steps>& known);
  // Maps what sweeps lead to (sweeps.h), level by level, until one makes nothing faster.
  void TakeSweeps();
  // Maps up to `candidates` further candidates.
  absl::Status Continue(int64_t candidates);

  // Whether no step or no time is left.
  bool Done() const;
  int64_t mapped() const;
  // Time per piece of the best candidate in a chain of equal pieces.
  double best_us() const;
  // Whether sweeps alone lead to the fastest.
  bool SweepsLead() const;
  // The candidates worth trying under other costs: best for some border, or among the cheapest.
  std::vector<Steps> Known(int cheapest) const;
  // Must be called last.
  SubstitutionResult TakeResult();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SUBSTITUTION_H_
