// How many devices would do for a model that does not fit.
#ifndef ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_
#define ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"

namespace isomer {

// The fewest nodes like those of the machine on which a short search finds a plan that fits: of
// twice, three times, four times, six times .. as many, in that order. Absent if there is none
// among them, no more time, or no way to add nodes (machines of links by name).
absl::StatusOr<std::optional<int64_t>> EnoughNodes(const Model& model, const RuleIndex& rules,
                                                   const CostModel& cost,
                                                   const OptimizeOptions& options);

// One line on a plan that does not fit: what it takes and for what, what there is, and how many
// nodes would do.
std::string DoesNotFitText(const OptimizeResult& result, const Machine& machine,
                           std::optional<int64_t> enough_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_ENOUGH_DEVICES_H_
