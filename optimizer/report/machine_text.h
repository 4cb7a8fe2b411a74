// A machine for people to read: as a table, and as a drawing.
#ifndef ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_

#include <string>

#include "optimizer/machine/machine.h"

namespace isomer {

// Devices, levels and links with their rates, and what collectives are predicted to take over one
// node and over all.
std::string DescribeMachine(const Machine& machine);

// Boxes in boxes, joined by links with their rates; of many equal units, the first and how many
// more there are. A machine by names is drawn as its graph. One self-contained SVG file.
std::string MachineSvg(const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_MACHINE_TEXT_H_
