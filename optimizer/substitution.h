// Level 2: best-first search over algebraic substitutions of one piece (Unity, OSDI'22, section 5;
// the order and the pruning by alpha are TASO's, SOSP'19).
//
// A candidate's cost is its best mapping (level 3), so that algebra is judged under the parallelism
// that suits it: a merge that saves launches may lose a split. Candidates above alpha times the
// best are not expanded. After a step, only matches that touch what the step added are sought; the
// parent's other matches are kept.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/piece_mapping.h"
#include "optimizer/stopping.h"

namespace isomer {

struct SubstitutionOptions {
  double alpha = 1.05;
  int64_t budget = 100;  // candidates that are mapped
  // Steps tried for each candidate of the budget: most lead to graphs seen before.
  int64_t tries_per_candidate = 50;
  Deadline deadline = {};
};

struct SubstitutionResult {
  struct Candidate {
    Graph graph;
    std::vector<DerivationStep> steps;  // from the piece's own graph
  };
  std::vector<Candidate> candidates;  // those that are best for some border; the first has no step
  CostTable us;                       // least over the candidates
  std::vector<int> best;              // per entry of `us`: the candidate
  int64_t mapped = 0;
  StopReason stop = StopReason::kExhausted;
  bool exact = true;  // of all mappings
};

absl::StatusOr<SubstitutionResult> SearchSubstitutions(const Piece& piece, const Borders& borders,
                                                       const SubstitutionOptions& options,
                                                       CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_H_
