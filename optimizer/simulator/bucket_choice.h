// Where buckets of gradients end best.
//
// The gradients that a group of devices sums become ready one after the other, at times that hardly
// depend on how they are summed. A bucket of them goes when its last is ready and those before it
// have gone. Its weights are updated behind the backward pass, when it is summed and the weights
// before them are updated, or beside it, which delays what is computed behind that. Large buckets
// go at a better rate, but later, and their updates later still. So where they end is a shortest
// path, found by a dynamic program over the gradients; sizes such as PyTorch's 25 MiB (Li et al.,
// "PyTorch Distributed", 2020) are one of its paths.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_
#define ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/plan.h"

namespace isomer {

// UpdateOptions::bucket_ends for weights that are updated behind the backward pass, or beside it
// (UpdateOptions::immediate).
struct BucketEnds {
  std::set<std::string> behind, beside;
};

// Those for the plan, as its step with each gradient by itself tells; none if no gradient is
// summed, if each micro-batch's is, or if the plan is not simulated.
absl::StatusOr<BucketEnds> BestBucketEnds(const CostModel& cost, const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_BUCKET_CHOICE_H_
