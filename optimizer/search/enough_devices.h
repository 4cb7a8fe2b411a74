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

// The fewest nodes of the machine's kind on which a short search finds a plan that fits: tries
// twice, three times, four times, six times .. as many, in that order. nullopt if none of them
// does, time is over, or nodes cannot be added (machines of named links).
absl::StatusOr<std::optional<int64_t>> EnoughNodes(const Model& model, const RuleIndex& rules,
                                                   const CostModel& cost,
                                                   const OptimizeOptions& options);

// One line on a model whose outputs alone, which one device gives back whole, are larger than its
// memory, so that no plan fits: names the largest. nullopt: they are not.
std::optional<std::string> OutputsDoNotFitText(const Model& model, bool training,
                                               const Machine& machine);

// One line on a model whose outputs leave no room on a device that gives them back whole, in
// training: as they are returned and, beside that, as a plan in `precision` computes them. nullopt:
// they leave some.
std::optional<std::string> OutputsLeaveNoRoomText(const Model& model, DataType precision,
                                                  const Machine& machine);

// One line on a plan that does not fit: the memory it needs, by purpose, the memory available, and
// the number of nodes that would suffice.
std::string DoesNotFitText(const OptimizeResult& result, const Machine& machine,
                           std::optional<int64_t> enough_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_
