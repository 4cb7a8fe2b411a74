// The best assignment of choices to all calls, proved: A* over the calls in topological order, with
// the simulated step as the objective and bounds from below as the heuristic.
//
// The space: the graph as it is, every call on the same devices, any choice of the tables; the
// number of devices is one that divides the machine, each in turn. Steps are those of task_graph.h:
// one micro-batch, every gradient synchronised by itself, calls in the order of the plan that
// the search begins with. Numbers of devices on which no step can be as fast (lower_bound.h) are
// left out. A prefix of choices is bounded by the greatest of
//
//   path    along the heaviest path of the graph: forward, gradients and what moves over its edges,
//           with updates, or with synchronisation in place of gradients, or halves of both
//   queues  of what a device computes and what it communicates, several mixtures (lower_bound.h);
//           or all of the forward pass, then such mixtures of the backward pass
//
// each of which is a sum over calls and edges, so that PrefixBound completes it. Prefixes are taken
// up by their bound, the longer first, until none is below the best step that was simulated; then
// that is the optimum. A space that is too large ends by the budget, with the bound reached.
#ifndef ISOMER_OPTIMIZER_EXHAUSTIVE_H_
#define ISOMER_OPTIMIZER_EXHAUSTIVE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost_tables.h"
#include "optimizer/derivation.h"
#include "pcg/plan.h"

namespace isomer {

struct ExhaustiveOptions {
  int64_t budget = 2000000;  // prefixes kept, over all numbers of devices
};

struct ExhaustiveResult {
  MappedModel best;
  double step_us = 0;
  double bound_us = 0;  // no assignment is faster; step_us if `proved`
  bool proved = false;
  int64_t prefixes = 0, simulated = 0;
  double assignments = 0;  // size of the space

  // "proved: 412.0 us is the optimum of 1.2e9 assignments (...)".
  std::string ToString() const;
};

// `start`: an assignment to beat, on the graph of `model`; its choices need not be in the tables.
// Errors: what task graphs do not know (task_graph.h).
absl::StatusOr<ExhaustiveResult> SearchExhaustively(const Model& model, const MappedModel& start,
                                                    const ExhaustiveOptions& options,
                                                    CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_EXHAUSTIVE_H_
