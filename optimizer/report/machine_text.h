// A machine as text and as a drawing.
#ifndef ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_

#include <string>

#include "optimizer/machine/machine.h"

namespace isomer {

// Devices, levels and links with their bandwidths, and predicted times of collectives within one
// node and over all.
std::string DescribeMachine(const Machine& machine);

// Nested boxes, connected by links with their bandwidths; of many equal units, the first and the
// number of others. A machine of named links is drawn as its graph. One self-contained SVG file.
std::string MachineSvg(const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_
