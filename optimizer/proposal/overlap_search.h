// The search on the first devices of the machine, with what the simulator knows and tables do not:
// how much of what is communicated hides behind the backward pass.
//
// Mappings are searched for with more and less of the synchronisation of gradients counted; the
// simulator picks the best, and what it alone sees is tried on them (turns.h, refinement.h).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_OVERLAP_SEARCH_H_
#define ISOMER_OPTIMIZER_PROPOSAL_OVERLAP_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/proposal/optimization.h"
#include "optimizer/proposal/strategy_search.h"

namespace isomer {

class OverlapSearch {
 public:
  OverlapSearch(Optimization* run, StrategySearch* search) : run_(*run), search_(*search) {}

  // Adds to the contest. On part of the machine: one search and no more, unless it is promising.
  absl::Status Run(Strategy strategy, int64_t devices);

  // The plan that one search finds; nothing: there was no time, and there are others.
  absl::StatusOr<std::optional<Plan>> Find(Strategy strategy, const CostOptions& options);

  // Adds a mapping to the contest, which refinement may begin with.
  absl::StatusOr<Prediction> Consider(const MappedModel& mapped);

  // Refinement begins with none of the mappings so far: they are on other devices.
  void Forget();

  // Another search maps the model's own graph in one piece and walks from there.
  void LeaveModelAsItIs() { model_as_it_is_ = false; }

  // Walks (refinement.h) from the fastest mappings that Run refined, on the fewest devices first:
  // from what they find there, with devices that idle, there is another on more devices if those of
  // their own did not come as far. So a machine has all walks of its parts, and is never slower.
  absl::Status WalkUp();

 private:
  absl::Status SearchWithWeights();
  absl::Status SearchBetween(int low, const Prediction& at_low, int high,
                             const Prediction& at_high);
  absl::StatusOr<std::optional<int>> SearchAt(int weight);
  absl::StatusOr<Prediction> PredictionOf(std::optional<int> entry);
  absl::Status Refine();
  absl::Status Splice(std::vector<MappedModel> mappings);
  absl::Status TakeTurnsIn(std::vector<MappedModel>* mappings);
  absl::Status MapInOnePiece();
  absl::Status Reorder();
  // The same with the other MappedModel::copies_arranged, if it is promising.
  absl::Status ConsiderOtherwiseArranged(MappedModel mapped, const Prediction& as_mapped);
  absl::StatusOr<Prediction> ConsiderIfAllowed(const MappedModel& mapped);
  absl::StatusOr<Prediction> ConsiderWalk(const MappedModel& mapped, double without_buckets_us);
  void Remember(const MappedModel& mapped, const Prediction& prediction);

  // A mapping that refinement may begin with.
  struct Start {
    std::optional<MappedModel> mapping;
    double us = kImpossibleUs;
  };
  absl::Status WalkFrom(const Start& start);
  // From the fastest; then, if it ended at nothing faster that fits, from the best.
  absl::Status WalkFrom(Start fastest, Start best);
  absl::Status ImprovePairsOf(const Start& start);
  void SetOptionsToWalk();
  const Restrictions* restrictions() const;

  Optimization& run_;
  StrategySearch& search_;
  Strategy strategy_ = Strategy::kHierarchical;
  int64_t devices_ = 0;
  bool model_as_it_is_ = true;
  // That this search found, by the weight of synchronisation, the largest first.
  std::map<double, MappedModel, std::greater<>> mappings_;
  bool is_far_too_large_ = false;
  Start fastest_;   // on as many devices, whether it fits or not
  Start best_;      // the fastest that fits
  Start as_it_is_;  // the fastest of the model's own graph
  struct Starts {
    Start fastest, best, as_it_is;
  };
  std::map<int64_t, Starts> starts_;  // by devices, what Run left them at
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_OVERLAP_SEARCH_H_
