// What is done about plans that do not fit into the devices' memory.
//
// Means are tried in the order of what they cost: weights' states and gradients in parts (ZeRO),
// gradients that are used up at once, results that are computed again for the backward pass
// (segments.h), small buckets; micro-batches one after the other; prices of memory in the search;
// the optimizer's states on the host. Each plan is changed no more than it takes to make it fit,
// and the fastest of those that do wins.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_MEMORY_REDUCTION_H_
#define ISOMER_OPTIMIZER_PROPOSAL_MEMORY_REDUCTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/proposer.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

extern const Proposer kMemory, kLeastRecomputation;

struct MemoryReductionOptions {
  bool training = true;
  bool choose_update_method = false;          // of weights; else that of the plans stays
  bool may_recompute = true;                  // else what the plans compute again stays
  std::optional<int64_t> micro_batches = {};  // of plans that the search is asked for; none: any
};

// A plan that takes less memory, to be looked for by the search.
struct SmallerPlan {
  double us_per_byte = 0;     // the price of what a device keeps
  int64_t micro_batches = 1;  // one after the other on all devices
};
// As the search finds it, or none if there is no such plan (a batch that cannot be cut so, no time
// left). It need not take part in the contest.
using FindSmallerPlan = std::function<absl::StatusOr<std::optional<Plan>>(const SmallerPlan&)>;

// Plans that fit, where the fastest does not. REQUIRES: some plan took part.
absl::Status ReduceMemory(const CostModel& cost, const MemoryReductionOptions& options,
                          const Deadline& deadline, const FindSmallerPlan& find, Contest* contest);

// The best plan, if it fits and computes results again, with as few of them as fit: configurations
// compute again all of a kind (RecomputeMode) or nothing.
absl::Status RecomputeLess(const CostModel& cost, const MemoryReductionOptions& options,
                           const Deadline& deadline, Contest* contest);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_MEMORY_REDUCTION_H_
