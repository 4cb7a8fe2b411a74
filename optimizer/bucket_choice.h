// Where buckets of gradients end best.
//
// The gradients that a group of devices sums become ready one after the other, at times that hardly
// depend on how they are summed. A bucket of them goes when its last is ready and those before it
// have gone; its weights are updated when it is summed, all gradients are computed and the weights
// before them are updated. Large buckets go at a better rate, but later, and their updates later
// still. So where they end is a shortest path, found by a dynamic program over the gradients; sizes
// such as PyTorch's 25 MiB (Li et al., "PyTorch Distributed", 2020) are one of its paths.
#ifndef ISOMER_OPTIMIZER_BUCKET_CHOICE_H_
#define ISOMER_OPTIMIZER_BUCKET_CHOICE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost.h"
#include "pcg/plan.h"

namespace isomer {

// UpdateOptions::bucket_ends for the plan, as its step with each gradient by itself tells; none if
// no gradient is summed, if each micro-batch's is, or if the plan is not simulated.
absl::StatusOr<std::set<std::string>> BestBucketEnds(const CostModel& cost, const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BUCKET_CHOICE_H_
