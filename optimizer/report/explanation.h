// Explains the time of a simulated step: its critical path, and utilisation of devices and links.
#ifndef ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_
#define ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/cost/timeline.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/json.h"

namespace isomer {

// A step of the average of the simulated devices: what is not computation.
struct StepShares {
  double compute_us = 0;
  // While nothing is computed, by what is communicated ("all_gather of activations").
  std::map<std::string, double> exposed_communication_us;
  double idle_us = 0;  // the rest: bubbles, and waits for others

  double exposed_us() const;
};

// The part that a node has in StepShares.
struct NodeShare {
  double compute_us = 0;
  // By the same kinds: exposed time, and bytes that a device sends, hidden or not.
  std::map<std::string, double> exposed_us, sent_bytes;
};

struct Explanation {
  std::vector<CriticalTask> critical_path;
  StepShares shares;
  std::vector<NodeShare>
      nodes;  // per node of the graph; they add up to `shares`, but for idle time
  // Time on the critical path by kind of task, and the part of it that waited for a queue (of a
  // device or link) rather than a dependency.
  double compute_us = 0, communication_us = 0, queued_us = 0;
  std::vector<int32_t> devices;  // simulated: all, or one of each class
  // Of several steps between two pipeline flushes, all times and bytes except the path are those of
  // one. Per device of the machine; the rest of the step is idle.
  std::vector<double> device_compute_us, device_communication_us;
  // Per link: bytes (traffic.h) and their time. Where not all devices were simulated, only links
  // between simulated ones.
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
// The lines below that sentence: the busiest and the least busy device, the busiest links.
std::string ExplanationText(const Explanation& explanation, const Machine& machine, double step_us);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_EXPLANATION_H_
