#ifndef ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
#define ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_

#include <string>

#include "optimizer/machine/machine.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// A simulated step as a picture: time to the right, a row for each stream of the first
// `max_devices` devices and for each link between any that messages queue for. Tasks of the
// critical path are outlined. Names show where a browser's pointer rests.
std::string TimelineSvg(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
                        const Machine& machine, int max_devices = 16);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TIMELINE_SVG_H_
