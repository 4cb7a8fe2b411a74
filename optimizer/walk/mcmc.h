// Markov chain Monte Carlo over the choices of a task graph (FlexFlow, MLSys'19, section 6): a
// random operator gets a random choice, and the change is kept with probability
//
//   min(1, exp(beta (cost - cost of the proposal)))
//
// so that the walk prefers faster steps and can leave local minima. Proposals are simulated
// incrementally.
#ifndef ISOMER_OPTIMIZER_WALK_MCMC_H_
#define ISOMER_OPTIMIZER_WALK_MCMC_H_

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/simulator/task_graph.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Changes choices of the graph, without committing. Proposers other than FlexFlow's choose the
// operators themselves.
using ProposeChange = std::function<absl::Status(std::mt19937_64* random, TaskGraph* graph)>;

// Uniform below n. std::uniform_int_distribution differs between libraries.
inline int Below(std::mt19937_64* random, int n) {
  return static_cast<int>((*random)() % static_cast<uint64_t>(n));
}
// Uniform in [0, 1).
inline double Chance(std::mt19937_64* random) {
  return static_cast<double>((*random)() >> 11) * 0x1p-53;
}

struct McmcOptions {
  uint64_t seed = 1;
  // beta times the initial step: a proposal slower by 1/beta of that is accepted with probability
  // 1/e.
  double beta = 500;
  // Ends when the budget is used up, or when the second half of the proposals so far has brought no
  // improvement. Counts proposals, not seconds, so that runs are reproducible by the seed.
  int64_t max_proposals = 1000000;
  // Minimum number of proposals per operator.
  int64_t proposals_per_node = 10;
  Deadline deadline = {};  // also ends here
  // Also ends when a step takes no longer than this.
  Picoseconds target = 0;
  // Empty: a random operator gets a random choice.
  ProposeChange propose = {};
};

struct McmcResult {
  enum class Stop { kBudget, kNoImprovement, kDeadline, kTarget };
  std::vector<int> choices;  // of the best step; the graph is left with them
  Picoseconds initial = 0, best = 0;
  int64_t proposals = 0, accepted = 0;
  int64_t best_at = 0;  // proposals before it was found
  Stop stop = Stop::kBudget;
};

// The operators with several choices.
std::vector<int> MovableNodes(const TaskGraph& graph);

// Walks from the current choices of `graph`.
absl::StatusOr<McmcResult> SearchByMcmc(const McmcOptions& options, TaskGraph* graph);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_WALK_MCMC_H_
