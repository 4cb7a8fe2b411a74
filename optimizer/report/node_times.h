// What each operator of a plan takes in a step, and where those times are from.
#ifndef ISOMER_OPTIMIZER_REPORT_NODE_TIMES_H_
#define ISOMER_OPTIMIZER_REPORT_NODE_TIMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"

namespace isomer {

// Collectives and transfers of one kind, of all simulated devices, in a step.
struct NodeExchange {
  double count = 0, us = 0;  // `us` in total
  double bytes = 0;          // Task::bytes, in total
};

struct NodeTimes {
  // On the device where both together are longest. `backward_us` includes what is computed again.
  double forward_us = 0, backward_us = 0;
  double us() const { return forward_us + backward_us; }
  std::map<TimeOrigin, double> by_origin;         // us of all simulated devices
  std::map<std::string, NodeExchange> exchanges;  // by "all_gather forward, 2 devices"
};

// Per node of the plan's lowered graph. `simulation` is that of `lowered`.
std::vector<NodeTimes> TimesOfNodes(const LoweredPlan& lowered, const Simulation& simulation,
                                    const CostModel& cost);

// Exchanges of all nodes together.
std::map<std::string, NodeExchange> ExchangesOf(const std::vector<NodeTimes>& nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_NODE_TIMES_H_
