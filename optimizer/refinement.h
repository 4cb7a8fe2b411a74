// What is tried on the plans that a search has found, because only the simulator sees what it
// brings: how long synchronisation keeps what comes behind it waiting, and what it hides behind.
//
//   buckets   of gradients, larger ones: fewer and at a better rate, but later
//   splices   of two mappings of one graph, one that synchronises much (its weight in the tables is
//             low) and one that avoids it. Gradients of the last calls are ready first: what is
//             behind a cut is taken from the one, where there is time to hide it, what is before
//             the cut from the other
#ifndef ISOMER_OPTIMIZER_REFINEMENT_H_
#define ISOMER_OPTIMIZER_REFINEMENT_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/contest.h"
#include "optimizer/derivation.h"
#include "optimizer/stopping.h"

namespace isomer {

// The best plan so far, with larger buckets as long as they make it faster.
absl::Status ConsiderBuckets(const Deadline& deadline, Contest* contest);

// Predicts the plan of a mapping and lets it take part.
using ConsiderMapping = std::function<absl::StatusOr<Prediction>(const MappedModel& mapped)>;

// `mappings`: in falling order of the weight of synchronisation. Pairs of the same graph are
// spliced in several places, more finely around the best of them if that is about as fast as the
// best plan so far.
absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const Deadline& deadline, const ConsiderMapping& consider);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REFINEMENT_H_
