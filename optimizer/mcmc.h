// Markov chain Monte Carlo over the choices of a task graph (FlexFlow, MLSys'19, section 6): a
// random operator gets a random choice, and the change is kept with probability
//
//   min(1, exp(beta (cost - cost of the proposal)))
//
// so that the walk prefers faster steps and can leave local minima. Every proposal is simulated by
// what it changes.
#ifndef ISOMER_OPTIMIZER_MCMC_H_
#define ISOMER_OPTIMIZER_MCMC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/stopping.h"
#include "optimizer/task_graph.h"

namespace isomer {

struct McmcOptions {
  uint64_t seed = 1;
  // beta, times the step that the walk begins with: a proposal that is slower by 1/beta of that is
  // kept with probability 1/e.
  double beta = 500;
  // It ends when the budget is used up, or when the second half of the proposals so far has brought
  // no improvement. Proposals are counted rather than seconds, so that a seed decides everything.
  int64_t max_proposals = 1000000;
  // But not before each operator had so many.
  int64_t proposals_per_node = 10;
  Deadline deadline = {};  // or when this is over
  // Or as soon as a step takes no longer than this.
  Picoseconds target = 0;
};

struct McmcResult {
  enum class Stop { kBudget, kNoImprovement, kDeadline, kTarget };
  std::vector<int> choices;  // of the best step seen, which the graph is left at
  Picoseconds initial = 0, best = 0;
  int64_t proposals = 0, accepted = 0;
  int64_t best_at = 0;  // proposals before it was found
  Stop stop = Stop::kBudget;
};

// Walks from the choices that `graph` has.
absl::StatusOr<McmcResult> SearchByMcmc(const McmcOptions& options, TaskGraph* graph);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MCMC_H_
