#include "optimizer/report/node_times.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/cost/task_time.h"

namespace isomer {
namespace {

std::string ExchangeName(const Schedule& schedule, const Task& task) {
  return absl::StrCat(TaskKindName(task.kind), " ", PhaseName(task.phase), ", ",
                      schedule.GroupOf(task).size(), " devices");
}

}  // namespace

std::vector<NodeTimes> TimesOfNodes(const LoweredPlan& lowered, const Simulation& simulation,
                                    const CostModel& cost) {
  struct OnDevice {
    double forward_us = 0, backward_us = 0;
  };
  const Schedule& schedule = lowered.schedule;
  std::vector<NodeTimes> nodes(lowered.mapped.graph.num_nodes());
  std::vector<std::map<int32_t, OnDevice>> devices(nodes.size());
  TaskTimes times(cost, lowered.mapped.graph, schedule);
  for (const Task& task : schedule.tasks) {
    const bool communicates = IsCommunication(task.kind);
    if ((!IsOfKernel(task.kind) && !communicates) || task.step > 0) continue;
    const double often = simulation.Times(task.moment);
    const TaskTime time = times.Of(task);
    NodeTimes& node = nodes[task.node.value];
    node.by_origin[time.origin] += often * time.us;
    if (communicates) {
      NodeExchange& exchange = node.exchanges[ExchangeName(schedule, task)];
      exchange.count += often;
      exchange.us += often * time.us;
      exchange.bytes += often * static_cast<double>(task.bytes);
      continue;
    }
    OnDevice& device = devices[task.node.value][task.devices[0]];
    (task.phase == Phase::kForward ? device.forward_us : device.backward_us) += often * time.us;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& [device, of] : devices[i]) {
      if (of.forward_us + of.backward_us <= nodes[i].us()) continue;
      nodes[i].forward_us = of.forward_us;
      nodes[i].backward_us = of.backward_us;
    }
  }
  return nodes;
}

std::map<std::string, NodeExchange> ExchangesOf(const std::vector<NodeTimes>& nodes) {
  std::map<std::string, NodeExchange> sums;
  for (const NodeTimes& node : nodes) {
    for (const auto& [what, exchange] : node.exchanges) {
      NodeExchange& sum = sums[what];
      sum.count += exchange.count;
      sum.us += exchange.us;
      sum.bytes += exchange.bytes;
    }
  }
  return sums;
}

}  // namespace isomer
