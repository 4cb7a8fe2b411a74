// The baselines in the contest.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/proposer.h"

namespace isomer {

// Each baseline proposes by a row of its own.
extern const Proposer kDataParallelProposer, kZero3Proposer, kMegatronProposer, kPublishedProposer,
    kPipelineProposer;

// Baselines that suit the model are predicted; those that keep the constraints take part, or, where
// one is asked for rather than a search, that one.
class BaselineEntries {
 public:
  explicit BaselineEntries(SearchContext* context) : context_(*context) {}

  // Begins to predict the one of that name, unless it does not suit the model.
  absl::Status Enter(const std::string& name, Submachine* on);
  absl::Status EnterPipeline();
  // All that were entered are predicted.
  absl::Status Settle();

  // A mapping by hand, on a configuration if there is one, as one of the baseline's plans.
  absl::StatusOr<Prediction> Consider(const MappedModel& mapped, const std::string& name,
                                      const ParallelConfig* config = nullptr);

  // By name. A baseline may be several plans: the fastest that fits counts, or the smallest.
  const std::map<std::string, Prediction>& predictions() const { return predictions_; }
  const Prediction& single_device() const { return single_device_; }
  // Those that do not keep the constraints.
  const std::vector<std::string>& ignoring() const { return ignoring_; }

  // The share of the step that devices would compute if the model's work were dealt out evenly.
  double BusyShare() const;

 private:
  // `on`: may begin refinement with it; null: it is not.
  absl::StatusOr<int> Enter(const MappedModel& mapped, const std::string& name,
                            const ParallelConfig* config, Submachine* on);
  absl::StatusOr<Prediction> Settle(const std::string& name, int entry);

  SearchContext& context_;
  std::vector<std::pair<std::string, int>> entered_;  // and not settled
  std::map<std::string, Prediction> predictions_;
  Prediction single_device_;
  std::vector<std::string> ignoring_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_
