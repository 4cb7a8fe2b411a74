// Bytes that a schedule sends over each link of a machine.
#ifndef ISOMER_OPTIMIZER_COST_TRAFFIC_H_
#define ISOMER_OPTIMIZER_COST_TRAFFIC_H_

#include <map>

#include "absl/functional/function_ref.h"
#include "optimizer/cost/cost.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

using Traffic = std::map<LinkId, double>;  // bytes

// How many messages a message that represents several puts on link `link` of its path of `size`
// links: on the way out of the sender's unit, those sent; on the way in, those received.
inline int64_t OnPath(const Schedule::Whole::Count& count, size_t link, size_t size) {
  return 2 * link < size ? count.sent : count.received;
}

struct Message {
  int64_t from = 0, to = 0;
  double bytes = 0;
  Schedule::Whole::Count count = {};  // of messages like it that it represents
};
// The messages of a task; none unless it communicates. Collectives use the cheapest algorithm
// (CollectiveCost::Choice): rings through their devices in the order of their numbers; for
// hierarchies and trees, level after level, rings of the devices at the same position in their
// units; for an all-to-all, a message for each pair.
void ForEachMessage(const CostModel& cost, const Schedule& schedule, const Task& task,
                    absl::FunctionRef<void(const Message&)> visit);

// Adds a message to the links of its Machine::Path, `times` over.
void AddMessage(const Machine& machine, const Message& message, double times, Traffic* traffic);

// Adds a task's traffic.
void AddTraffic(const CostModel& cost, const Schedule& schedule, const Task& task,
                Traffic* traffic);

// The traffic of all tasks.
Traffic TrafficOf(const CostModel& cost, const Schedule& schedule);

// Microseconds that the busiest link takes.
double SlowestLinkUs(const Machine& machine, const Traffic& traffic);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TRAFFIC_H_
