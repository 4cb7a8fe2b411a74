// Why a simulated step takes as long as it does: its critical path, and what is busy when.
#ifndef ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_
#define ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/timeline.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/json.h"

namespace isomer {

struct Explanation {
  std::vector<CriticalTask> critical_path;
  // Of the critical path, by what its tasks are, and how much of it waited for a queue (of a device
  // or a link) rather than for what it depends on.
  double compute_us = 0, communication_us = 0, queued_us = 0;
  std::vector<int32_t> devices;  // that were simulated; all, or one of each class
  // Of several steps between two flushes, all times and bytes but the path are those of one.
  // Per device of the machine. What it is idle is the rest of the step.
  std::vector<double> device_compute_us, device_communication_us;
  // Per link: what crosses it (traffic.h), and how long that takes it. Where not all devices were
  // simulated, of links between those only.
  std::vector<double> link_bytes, link_us;
  // One sentence: "Communication bounds the step: ...".
  std::string bound;
};

// `simulation` is that of `schedule`.
Explanation Explain(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Simulation& simulation);

// "backward of matmul layer0/q", "all_reduce of gradients of layer0/q/w".
std::string TaskLabel(const Graph& graph, const Task& task);

Json ExplanationJson(const Explanation& explanation, const Machine& machine, double step_us);
// The lines below the sentence: the busiest and the idlest device, the busiest links.
std::string ExplanationText(const Explanation& explanation, const Machine& machine, double step_us);

// A Chrome/Perfetto trace of a simulated step: a process per device with a row for each of its
// streams, and one for the links that messages take.
absl::Status WriteTrace(const std::string& path, const Graph& graph, const Schedule& schedule,
                        const Simulation& simulation, const Machine& machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_
