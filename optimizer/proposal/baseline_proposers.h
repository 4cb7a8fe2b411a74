// The baselines in the contest: all that suit the model are predicted; those that keep the
// constraints take part, or, where one is asked for rather than a search, that one.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_BASELINE_PROPOSERS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_BASELINE_PROPOSERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/proposer.h"

namespace isomer {

// Each baseline proposes by a row of its own.
extern const Proposer kDataParallelProposer, kZero3Proposer, kMegatronProposer, kPublishedProposer,
    kGridProposer;

// Begins to predict the one of that name, unless it does not suit the model. `on`: refinement there
// may begin with it; null: nowhere.
absl::Status EnterBaseline(const std::string& name, SearchContext* context, Submachine* on);
// All that were entered are predicted, at once.
absl::Status PredictBaselines(SearchContext* context);

// A mapping by hand in a configuration, as one of the baseline's plans.
absl::StatusOr<Prediction> ConsiderAsBaseline(const MappedModel& mapped, const std::string& name,
                                              const ParallelConfig& config, SearchContext* context);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_BASELINE_PROPOSERS_H_
