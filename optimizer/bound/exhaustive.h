// The proved optimum of choices for all calls: A* over the calls in topological order, with the
// simulated step as the objective and lower bounds as the heuristic.
//
// The space: the graph without substitutions, every call on the same devices, any choice of the
// tables; numbers of devices are the divisors of the machine's, each in turn. Steps are those of
// task_graph.h: one micro-batch, every gradient synchronised by itself, calls in the order of the
// plan that the search starts from. Numbers of devices on which no step can be as fast
// (lower_bound.h) are skipped. A prefix of choices is bounded by the maximum of several sums over
// calls and edges (step_sums.h), which PrefixBound completes. Prefixes are expanded by their bound,
// the longer first, until none is below the best simulated step, which then is the optimum. A space
// that is too large ends at the budget, with the bound reached.
#ifndef ISOMER_OPTIMIZER_BOUND_EXHAUSTIVE_H_
#define ISOMER_OPTIMIZER_BOUND_EXHAUSTIVE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct ExhaustiveOptions {
  int64_t budget = 2000000;  // prefixes in memory, over all numbers of devices
  // Nodes with one name are one operator, within which nothing is resharded: the space of other
  // systems, in which, say, a recurrent cell is split as one. Unnamed nodes are operators of their
  // own. The start may be outside of that space; then the proof is that nothing in it is faster.
  std::map<NodeId, std::string> operators = {};
  Deadline deadline = {};  // ends the search as the budget does
};

struct ExhaustiveResult {
  MappedModel best;
  double step_us = 0;
  double bound_us = 0;  // lower bound on all assignments; step_us if `proved`, 0: unknown
  bool proved = false;
  StopReason stop = StopReason::kExhausted;  // what ended the search
  int64_t prefixes = 0, simulated = 0;
  double assignments = 0;  // in the space

  // "proved: 412.0 us is the optimum of 1.2e9 assignments (...)".
  std::string ToString() const;
};

// `start`: an assignment to beat, on the graph of `model`; its choices need not be in the tables.
// Errors: unsupported by task graphs (task_graph.h).
absl::StatusOr<ExhaustiveResult> SearchExhaustively(const Model& model, const MappedModel& start,
                                                    const ExhaustiveOptions& options,
                                                    CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_EXHAUSTIVE_H_
