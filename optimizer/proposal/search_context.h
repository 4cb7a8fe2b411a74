// What the proposers of one run of the optimizer share.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SEARCH_CONTEXT_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SEARCH_CONTEXT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/grid_graph.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/proposer.h"
#include "optimizer/proposal/strategy_search.h"
#include "optimizer/simulator/move_memo.h"
#include "optimizer/simulator/prediction_memo.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// A mapping that refinement may begin with, and its step.
struct RefinementStart {
  std::optional<MappedModel> mapping;  // none: too large to walk from
  double us = kImpossibleUs;
};

// The first devices of the machine, and what was found on them.
struct Submachine {
  int64_t devices = 1;
  bool is_whole = true;     // all that may be used
  bool is_searched = true;  // else only degrees are tried there
  // All mappings whose plans entered the contest, by entry; from `first_search` on, what searches
  // found.
  std::vector<std::pair<int, MappedModel>> entered = {};
  std::optional<int> first_search = {};  // the entry of the joint search
  RefinementStart fastest = {};          // whether it fits or not
  RefinementStart best = {};             // the fastest that fits
  RefinementStart as_it_is = {};         // the fastest of the model's own graph
};

// What became of the baselines (baseline_proposers.h).
struct Baselines {
  std::map<std::string, Prediction> predictions;  // by name
  // If the options keep them: by name; and by entry, those that may be a baseline's.
  std::map<std::string, Plan> plans;
  std::map<int, Plan> plan_of_entry;
  Prediction single_device;
  std::vector<std::string> ignoring;                 // that do not keep the constraints
  std::vector<std::pair<std::string, int>> entered;  // and not predicted yet
  std::string misfit;                                // of the user's own configuration (GridPlan)
  std::optional<ConfigEstimate> first_choice;        // of all, beside the user's own
};

// Asked for each mapping that is considered, for weights that calls arrange (transpose, join): each
// device that reads the result makes it from a copy of its own, or one makes it and sends it.
extern const Proposer kArrangedWeights;

// Estimates of grids (EnumerateGrids) on one model, by what runs that are parts of one may differ
// in. Thread-safe.
class GridMemo {
 public:
  struct Key {
    int64_t devices;
    UpdateMethod update;
    bool choose_update;
    int32_t steps_between_flushes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Estimates = absl::StatusOr<std::vector<ConfigEstimate>>;

  // Who asks first enumerates, and others wait.
  Estimates Of(const Key& key, absl::FunctionRef<Estimates()> enumerate);

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<Estimates> estimates;
  };
  std::mutex mutex_;
  std::map<Key, Slot> slots_;
};

// What runs that are parts of one have in common.
struct SharedMemos {
  PredictionMemo predictions;
  GridMemo grids;
};

struct SearchContext {
  // All of these outlive this.
  SearchContext(const Model& model, const RuleIndex& rules, const CostModel& cost,
                const OptimizeOptions& options, SharedMemos* shared);
  SearchContext(const SearchContext&) = delete;

  const SearchPolicy& policy() const { return options.policy; }

  // On all devices, of one micro-batch, all synchronisation counted; and on a submachine.
  CostOptions BaseOptions() const;
  CostOptions OptionsOn(const Submachine& on, double sync_weight = 1) const;

  // Weights are updated, and results computed again, as the user's options and step say, or as a
  // configuration, if there is one.
  absl::StatusOr<Plan> PlanOf(const MappedModel& mapped, const ParallelConfig* config = nullptr,
                              CallOrder order = CallOrder::kCanonical);
  void SetOptions(Plan* plan) const;

  // Threads that predict plans.
  int threads() const;

  bool Asks(const Proposer& proposer) const { return options.without.count(proposer.name) == 0; }
  // A lower bound is wanted.
  bool Bounds() const { return model.graph.num_nodes() <= options.bound_nodes; }
  // Constraints are on the whole machine; what simulates takes all of it.
  bool OnPartsToo() const;
  // Parts of several nodes are parts of the whole.
  bool SearchesParts() const;
  // A user binds calls to stages beyond the first: of all plans, those are pipelines.
  bool IsBoundToStages() const { return restrictions.least_stages() > 1; }
  // For those, or for a user's step: of all plans, grids alone, on the whole machine.
  bool WantsMicroBatches() const { return IsBoundToStages() || step.HasMicroBatches(); }
  // Not a baseline is asked for, nor micro-batches.
  bool Searches() const { return options.plan.empty() && !WantsMicroBatches(); }
  // Much of the time, and there is time to do something about it.
  bool DevicesWait() const;

  bool IsNearBest(double us) const { return us <= policy().near_best * contest.step_us(); }
  bool IsVeryNearBest(double us) const { return us <= policy().very_near_best * contest.step_us(); }

  // What one search finds; nothing: there was no time, and there are other plans.
  absl::StatusOr<std::optional<MappedModel>> Search(const CostOptions& cost_options);

  // Refinement may begin with what entered the contest.
  absl::Status RememberEntered(Submachine* on);
  // Adds a mapping to the contest, which refinement on `on` may begin with.
  absl::StatusOr<Prediction> Consider(const MappedModel& mapped, Submachine* on);
  // The same, if it keeps the constraints.
  absl::StatusOr<Prediction> ConsiderIfAllowed(const MappedModel& mapped, Submachine* on);
  // The mapping with the other MappedModel::copies_arranged, if it is promising as it is.
  absl::Status ConsiderOtherwiseArranged(MappedModel mapped, const Prediction& as_mapped);
  // Refinement may begin with it.
  void Remember(const MappedModel& mapped, const Prediction& prediction, Submachine* on);

  const Model& model;
  const CostModel& cost;
  const OptimizeOptions& options;
  const Constraints::OfStep step;  // what every plan does; of a baseline that is asked for: nothing
  const Deadline deadline;
  const int64_t devices;  // that may be used
  CostTables tables;
  MoveMemo moves;  // of all walks
  Restrictions restrictions;
  GridGraph graphs;
  SharedMemos& shared;
  Contest contest;
  Baselines baselines;
  StrategySearch searches;
  const bool arranges_weights;  // the model in each step (arranged_weights.h)
  // Another run maps the model's own graph in one piece, and walks from there.
  bool leaves_model_as_it_is = false;
  // Degrees on half of the devices may be faster: they were on these.
  bool degrees_help = false;
  // What Afterwards may refine, by devices.
  std::map<int64_t, Submachine> submachines;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SEARCH_CONTEXT_H_
