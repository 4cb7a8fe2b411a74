#ifndef ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
#define ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_

#include <string>

#include "optimizer/machine/machine.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// An SVG of a simulated step: time to the right, a row per queue of the devices that are shown
// (shown_devices.h: all, or the first of each stage of a pipeline), and the busiest links between
// devices that messages queue for. What is too short to be seen is drawn with its neighbours.
// Beneath bars that are on the critical path lies a black line. What is wide enough to be pointed
// at has a tooltip.
std::string TimelineSvg(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                        const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
