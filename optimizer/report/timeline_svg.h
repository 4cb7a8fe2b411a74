#ifndef ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
#define ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_

#include <string>

#include "optimizer/machine/machine.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// An SVG of a simulated step: time to the right, a row per stream of the first `max_devices`
// devices and per link between them that messages queue for. Tasks on the critical path are
// outlined. Names are tooltips.
std::string TimelineSvg(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                        const Machine& machine, int max_devices = 16);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
