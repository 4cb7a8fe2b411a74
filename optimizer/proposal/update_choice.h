// How the weights of the plans found are updated best, which only the simulator sees: by which
// method, when, and in which buckets (bucket_choice.h).
//
// Weights that are updated as soon as their gradients are summed are so while others are
// synchronised; but a device that has to wait for the sum could have computed other gradients
// meanwhile. What is best for one mapping need not be for another: replicas gain by what hides
// their synchronisation. So ways are tried on the fastest few.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_UPDATE_CHOICE_H_
#define ISOMER_OPTIMIZER_PROPOSAL_UPDATE_CHOICE_H_

#include "absl/status/status.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/proposer.h"
#include "pcg/support/stopping.h"

namespace isomer {

extern const Proposer kUpdates;

// What may be chosen; else it stays as the plans have it.
struct UpdateChoiceOptions {
  bool method = false;
  bool order = false;  // where buckets end, and when weights are updated
};

// Adds the contenders with other ways to update their weights to the contest, which trains.
absl::Status ConsiderUpdates(const UpdateChoiceOptions& options, const Deadline& deadline,
                             Contest* contest);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_UPDATE_CHOICE_H_
