#ifndef ISOMER_OPTIMIZER_REPORT_TRACE_H_
#define ISOMER_OPTIMIZER_REPORT_TRACE_H_

#include <string>

#include "absl/status/status.h"
#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"

namespace isomer {

// A simulated step as a Chrome/Perfetto trace: a process for each device that is shown
// (shown_devices.h), with a row per queue and a counter of memory by category, and one for links.
// Spans carry the operator's types, the bytes and FLOPs of the task on the device, and how many
// devices take part. Arrows lead to a task from the one on another row that it waited for last.
// `simulation` is that of `lowered`.
absl::Status WriteTrace(const std::string& path, const LoweredPlan& lowered,
                        const Simulation& simulation, const CostModel& cost);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_TRACE_H_
