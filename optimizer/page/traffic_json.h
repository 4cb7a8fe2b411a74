// Who sends how much to whom in a step.
#ifndef ISOMER_OPTIMIZER_PAGE_TRAFFIC_JSON_H_
#define ISOMER_OPTIMIZER_PAGE_TRAFFIC_JSON_H_

#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/json.h"

namespace isomer {

// {unit, columns: [..], rows: [{name, bytes: [..], within_node, between_nodes}]}: what each device
// of a row sends in a step, on average of its simulated devices, to all devices of a column. Rows
// and columns are devices, up to kMostColumns of them; else stages of a pipeline; else nodes; of
// more nodes than that, columns are the device's own node and the others. A device that is not
// simulated is in the stage of the last simulated one before it.
inline constexpr int64_t kMostColumns = 32;
Json TrafficJson(const CostModel& cost, const Schedule& schedule, const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PAGE_TRAFFIC_JSON_H_
