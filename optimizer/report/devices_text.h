// On which devices operators run, in words and as JSON.
#ifndef ISOMER_OPTIMIZER_REPORT_DEVICES_TEXT_H_
#define ISOMER_OPTIMIZER_REPORT_DEVICES_TEXT_H_

#include <string>

#include "absl/types/span.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"

namespace isomer {

// "0 to 63, 64 to 127, .. (16 ranges)", each from the first device of an operator to its last.
std::string DevicesText(const MappedGraph& mapped, absl::Span<const NodeId> members);

// Where every operator of a plan runs: [{name, operator, types, first_device, last_device, strides,
// micro_batches}], in topological order. Strides are those of MachineView, per dim of output 0,
// then of copies and of partials.
Json PlacementsJson(const MappedGraph& mapped);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_DEVICES_TEXT_H_
