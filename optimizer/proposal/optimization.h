// What the parts of one run of the optimizer share.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZATION_H_
#define ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZATION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/grid.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/simulator/move_memo.h"
#include "optimizer/simulator/prediction_memo.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct Optimization {
  // All of these outlive this. `predictions`: of all runs that are parts of one.
  Optimization(const Model& model, const RuleIndex& rules, const CostModel& cost,
               const OptimizeOptions& options, PredictionMemo* predictions);

  // On all devices, of one micro-batch, all synchronisation counted.
  CostOptions BaseOptions() const;

  // Weights are updated as the user's options say, or as a grid, if there is one.
  absl::StatusOr<Plan> PlanOf(const MappedModel& mapped, const Grid* grid = nullptr,
                              CallOrder order = CallOrder::kCanonical);
  void SetOptions(Plan* plan) const;

  // That there are for all.
  int threads() const;

  bool Asks(Proposer proposer) const { return options.without.count(proposer) == 0; }

  // A lower bound is wanted.
  bool Bounds() const { return model.graph.num_nodes() <= options.bound_nodes; }

  // Constraints are on the whole machine; what simulates takes all of it.
  bool OnPartsToo() const;

  const Model& model;
  const CostModel& cost;
  const OptimizeOptions& options;
  const Deadline deadline;
  const int64_t devices;  // that may be used
  CostTables tables;
  MoveMemo moves;  // of all walks
  Restrictions restrictions;
  PredictionMemo& predictions;
  Contest contest;
  const bool arranges_weights;  // the model in each step (arranged_weights.h)
  // Mappings whose plans entered the contest and that nobody has refined yet, by entry.
  std::vector<std::pair<int, MappedModel>> entered;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZATION_H_
