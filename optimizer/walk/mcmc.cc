#include "optimizer/walk/mcmc.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::vector<int> ChoicesOf(const TaskGraph& graph) {
  std::vector<int> choices;
  for (int node = 0; node < graph.num_nodes(); ++node) choices.push_back(graph.choice(node));
  return choices;
}

}  // namespace

std::vector<int> MovableNodes(const TaskGraph& graph) {
  std::vector<int> movable;
  for (int node = 0; node < graph.num_nodes(); ++node) {
    if (graph.num_choices(node) > 1) movable.push_back(node);
  }
  return movable;
}

absl::StatusOr<McmcResult> SearchByMcmc(const McmcOptions& options, TaskGraph* graph) {
  McmcResult result;
  result.choices = ChoicesOf(*graph);
  result.initial = result.best = graph->makespan();
  const std::vector<int> movable = MovableNodes(*graph);
  if (movable.empty()) {
    result.stop = McmcResult::Stop::kNoImprovement;
    return result;
  }
  std::mt19937_64 random(options.seed);
  const auto single = [&](std::mt19937_64* from, TaskGraph* to) -> absl::Status {
    const int node = movable[Below(from, static_cast<int>(movable.size()))];
    int choice = Below(from, to->num_choices(node) - 1);
    if (choice >= to->choice(node)) ++choice;
    return to->SetChoice(node, choice);
  };
  const double beta = options.beta / static_cast<double>(std::max<Picoseconds>(result.initial, 1));
  const int64_t least = options.proposals_per_node * static_cast<int64_t>(movable.size());
  Picoseconds current = result.initial;
  while (result.proposals < options.max_proposals) {
    if (result.proposals >= least && result.proposals >= 2 * result.best_at) {
      result.stop = McmcResult::Stop::kNoImprovement;
      break;
    }
    if (result.best <= options.target) {
      result.stop = McmcResult::Stop::kTarget;
      break;
    }
    if (options.deadline.Reached()) {
      result.stop = McmcResult::Stop::kDeadline;
      break;
    }
    ISOMER_RETURN_IF_ERROR(options.propose ? options.propose(&random, graph)
                                           : single(&random, graph));
    const double chance = Chance(&random);
    ++result.proposals;
    const Picoseconds proposed = graph->makespan();
    if (chance >= std::exp(beta * static_cast<double>(current - proposed))) {
      graph->Rollback();
      continue;
    }
    graph->Commit();
    ++result.accepted;
    current = proposed;
    if (current < result.best) {
      result.best = current;
      result.best_at = result.proposals;
      result.choices = ChoicesOf(*graph);
    }
  }
  for (int node = 0; node < graph->num_nodes(); ++node) {
    if (graph->choice(node) == result.choices[node]) continue;
    ISOMER_RETURN_IF_ERROR(graph->SetChoice(node, result.choices[node]));
  }
  graph->Commit();
  return result;
}

}  // namespace isomer
