// What a schedule sends over the links of a machine.
#ifndef ISOMER_OPTIMIZER_COST_TRAFFIC_H_
#define ISOMER_OPTIMIZER_COST_TRAFFIC_H_

#include <map>

#include "optimizer/cost/cost.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

using Traffic = std::map<LinkId, double>;  // bytes

// How many messages like one that counts for several take link `link` of its path of `size`: on the
// way out of the sender's unit, those that it sends; on the way in, those that the receiver gets.
inline int64_t OnPath(const Schedule::Whole::Count& count, size_t link, size_t size) {
  return 2 * link < size ? count.sent : count.received;
}

// Adds what a task sends; nothing unless it is communication. Every message takes Machine::Path.
// Collectives go the way that is cheapest (CollectiveCost::Choice): rings through their devices in
// the order of their numbers; level after level, in rings of devices at the same place in their
// units, for hierarchies and trees; a message from each to each for an all-to-all.
void AddTraffic(const CostModel& cost, const Schedule& schedule, const Task& task,
                Traffic* traffic);

// Of all tasks.
Traffic TrafficOf(const CostModel& cost, const Schedule& schedule);

// How long the busiest link takes.
double SlowestLinkUs(const Machine& machine, const Traffic& traffic);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_TRAFFIC_H_
