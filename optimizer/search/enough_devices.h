// The number of devices that a model needs to fit in memory.
#ifndef ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_
#define ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// What the smallest plan takes per device on `times` as many nodes, at the least, where it takes
// `half_bytes` on half of the nodes and `bytes` on them. Memory is a sum of what nodes share and of
// what each has whole, so the more nodes there are the less another doubling saves: it is at most
// what the last one did.
double LeastBytesOnMore(int64_t half_bytes, int64_t bytes, double times);

// The fewest nodes of the machine's kind on which a short search finds a plan that fits: tries
// twice, three times, four times, six times .. 64 times as many, in that order. `smallest_bytes`:
// what the smallest plan found takes per device on the machine as it is. nullopt if none of them
// does, what twice as many save says that none will (LeastBytesOnMore), time is over, or nodes
// cannot be added (machines of named links).
absl::StatusOr<std::optional<int64_t>> EnoughNodes(const Model& model, const RuleIndex& rules,
                                                   const CostModel& cost,
                                                   const OptimizeOptions& options,
                                                   int64_t smallest_bytes);

// One line on a model of which no plan fits: outputs that one device gives back whole are larger
// than its memory, and the largest is named, or weights and what training keeps of them are larger
// than all devices' memory and a search would look for a plan. nullopt: they are not.
std::optional<std::string> NoPlanFitsText(const Model& model, const OptimizeOptions& options,
                                          const Machine& machine);

// One line on a model whose outputs, which a step of training gives back whole, take more than an
// eighth of a device. nullopt: they are small.
std::optional<std::string> OutputsLeaveNoRoomText(const Model& model, const Machine& machine);

// One line on a plan that does not fit: the memory it needs, by purpose, the memory available, and
// the number of nodes that would suffice.
std::string DoesNotFitText(const OptimizeResult& result, const Machine& machine,
                           std::optional<int64_t> enough_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_
