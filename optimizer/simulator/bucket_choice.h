// The best ends of gradient buckets.
//
// The gradients that a device reduces, with all others or with some, become ready one after the
// other, at times that hardly depend on how they are reduced. A bucket is sent when its last
// gradient is ready and earlier buckets are sent. Its weights are updated either after the backward
// pass, when it is reduced and earlier weights are updated, or during it, which delays later
// compute. Large buckets use the bandwidth better, but start later, and their updates later still.
// So the best ends are a shortest path, by a dynamic program over the gradients; sizes such as
// PyTorch's 25 MiB (Li et al., "PyTorch Distributed", 2020) are one of its paths.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_
#define ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Sets of UpdateOptions::bucket_ends, of which one is the best: for weights updated after the
// backward pass, and for those updated during it (UpdateOptions::immediate). They are two where a
// device is of several groups: as if these took turns, and as if each was alone.
struct BucketEnds {
  std::set<std::set<std::string>> behind, beside;
};

// The ends for `plan`, from its simulated step with one gradient per bucket; none if no gradient is
// reduced, if each micro-batch's is, or if the plan is not simulated.
absl::StatusOr<BucketEnds> BestBucketEnds(const CostModel& cost, const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_
