// Of two mappings of one graph, one that synchronises much (its weight in the tables is low) and
// one that avoids it: gradients of the last calls are ready first, so what is behind a cut is taken
// from the one, where there is time to hide it, and what is before the cut from the other.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SPLICES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SPLICES_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/proposer.h"
#include "optimizer/proposal/search_policy.h"
#include "pcg/support/stopping.h"

namespace isomer {

extern const Proposer kSplices;

// Predicts the plan of a mapping and lets it take part.
using ConsiderMapping = std::function<absl::StatusOr<Prediction>(const MappedModel& mapped)>;

// `mappings`: in falling order of the weight of synchronisation. The first pair of the same graph
// is spliced in several places, more finely around the best of them if that is about as fast as the
// best plan so far.
absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const SearchPolicy& policy, const Deadline& deadline,
                             const ConsiderMapping& consider);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SPLICES_H_
