#include "optimizer/simulator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/memory_cost.h"
#include "optimizer/traffic.h"
#include "pcg/schedule/memory.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::vector<TensorType> OperandTypes(const Graph& graph, NodeId id) {
  std::vector<TensorType> types;
  for (TensorRef input : graph.node(id).inputs) types.push_back(graph.type(input));
  return types;
}

double SendReceiveUs(const CostModel& cost, const Schedule& schedule, const Task& task) {
  std::map<std::pair<int, int64_t>, int> messages;  // per level, at every receiver
  for (const auto& [read, write] : task.transfers) {
    const Buffer& from = schedule.buffers[task.reads[read]];
    const Buffer& to = schedule.buffers[task.writes[write]];
    const int level = cost.LevelBetween(from.device, to.device);
    if (level >= 0) ++messages[{level, to.device}];
  }
  Traffic traffic;
  AddTraffic(cost, schedule, task, &traffic);
  double latency_us = 0;
  for (const auto& [place, count] : messages) {
    latency_us = std::max(latency_us, count * cost.machine().levels[place.first].latency_us);
  }
  return cost.machine().launch_us() + SlowestLinkUs(cost.machine(), traffic) + latency_us;
}

// The operands whose gradients the task computes; empty if it is none of a gradient.
std::vector<bool> WantedOf(const Task& task) {
  std::vector<bool> wanted;
  if (task.kind != TaskKind::kComputeGradient) return wanted;
  for (BufferId id : task.writes) wanted.push_back(id != kNoBuffer);
  return wanted;
}

// What is sent of several buffers at once is copied together first, and apart in the end. (Pieces
// of a buffer are always copied together; that is measured with the collective.)
double PackingUs(const CostModel& cost, const Task& task) {
  const bool whole = task.kind == TaskKind::kAllReduce || task.kind == TaskKind::kReduce ||
                     task.kind == TaskKind::kBroadcast;
  if (!whole || task.segments == 1) return 0;
  return 2 * cost.ElementwiseTime(TaskKind::kLocal, 2 * task.bytes, task.devices[0]).us;
}

TaskTime TransportTime(const CostModel& cost, const Schedule& schedule, const Task& task) {
  if (const auto us = cost.MeasuredUs(task.kind, task.bytes, task.devices)) {
    return {*us, TimeOrigin::kMeasured};
  }
  auto collective = [&](Collective kind) {
    return TaskTime{cost.CollectiveUs(kind, task.bytes, task.devices), TimeOrigin::kRoofline};
  };
  switch (task.kind) {
    case TaskKind::kAllReduce:
      return collective(Collective::kAllReduce);
    case TaskKind::kReduceScatter:
      return collective(Collective::kReduceScatter);
    case TaskKind::kAllGather:
      return collective(Collective::kAllGather);
    case TaskKind::kAllToAll:
      return collective(Collective::kAllToAll);
    case TaskKind::kReduce:
      return collective(Collective::kReduce);
    case TaskKind::kBroadcast:
      return collective(Collective::kBroadcast);
    default:
      return {SendReceiveUs(cost, schedule, task), TimeOrigin::kRoofline};
  }
}

TaskTime CommunicationTime(const CostModel& cost, const Schedule& schedule, const Task& task) {
  TaskTime time = TransportTime(cost, schedule, task);
  time.us += PackingUs(cost, task);
  return time;
}

bool IsHostTask(TaskKind kind) {
  return kind == TaskKind::kLoad || kind == TaskKind::kFeed || kind == TaskKind::kUnload;
}

}  // namespace

TaskTime TimeOfTask(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Task& task) {
  if (task.phase == Phase::kLoad) return {};  // Before the first step.
  switch (task.kind) {
    case TaskKind::kLoad:
    case TaskKind::kFeed:
    case TaskKind::kUnload:
      return {};
    case TaskKind::kCompute:
    case TaskKind::kComputeGradient:
      return cost.CallTime(graph.node(task.node).op, OperandTypes(graph, task.node), WantedOf(task),
                           {task.flops, task.bytes}, task.devices[0]);
    case TaskKind::kFill:
    case TaskKind::kAccumulate:
    case TaskKind::kLocal:
    case TaskKind::kUpdate:
      return cost.ElementwiseTime(task.kind, task.bytes, task.devices[0]);
    case TaskKind::kAllReduce:
    case TaskKind::kReduceScatter:
    case TaskKind::kAllGather:
    case TaskKind::kAllToAll:
    case TaskKind::kReduce:
    case TaskKind::kBroadcast:
    case TaskKind::kSendReceive:
      return CommunicationTime(cost, schedule, task);
  }
  return {};
}

void AppendQueues(const CostModel& cost, const Schedule& schedule, const Task& task,
                  std::vector<int32_t>* queues) {
  if (IsHostTask(task.kind)) return;
  if (!IsCommunication(task.kind)) {
    queues->push_back(ComputeQueue(task.devices[0]));
    return;
  }
  for (int32_t device : task.devices) {
    queues->push_back(cost.machine().one_stream ? ComputeQueue(device)
                                                : CommunicationQueue(device));
  }
  if (task.kind != TaskKind::kSendReceive) return;
  std::vector<int32_t> links;
  for (const auto& [read, write] : task.transfers) {
    for (LinkId link : cost.machine().Path(schedule.buffers[task.reads[read]].device,
                                           schedule.buffers[task.writes[write]].device)) {
      links.push_back(LinkQueue(cost.machine(), link));
    }
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  queues->insert(queues->end(), links.begin(), links.end());
}

Simulation Simulate(const CostModel& cost, const Graph& graph, const Schedule& schedule) {
  Simulation simulation;
  std::map<int32_t, double> compute_us, communication_us;
  std::vector<int32_t> queues;
  for (const Task& task : schedule.tasks) {
    const TaskTime time = TimeOfTask(cost, graph, schedule, task);
    if (time.us > 0) {
      Simulation::Origins& origin = simulation.origins[time.origin];
      ++origin.tasks;
      origin.us += time.us * static_cast<double>(task.devices.size());
    }
    queues.clear();
    for (int32_t device : task.devices) {
      (IsCommunication(task.kind) ? communication_us : compute_us)[device] += time.us;
    }
    AppendQueues(cost, schedule, task, &queues);
    simulation.tasks.Add(PicosecondsOf(time.us), queues, task.deps);
  }
  simulation.timeline = RunTimeline(simulation.tasks);
  simulation.step_us = MicrosecondsOf(simulation.timeline.makespan);
  simulation.memory = LargestPeak(schedule);
  simulation.peak_bytes = simulation.memory.bytes;
  for (const auto& [device, us] : compute_us) {
    simulation.compute_us = std::max(simulation.compute_us, us);
  }
  for (const auto& [device, us] : communication_us) {
    simulation.communication_us = std::max(simulation.communication_us, us);
  }
  return simulation;
}

absl::StatusOr<Simulation> PredictPlan(const CostModel& cost, Plan* plan) {
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerPlan(*plan));
  Simulation simulation = Simulate(cost, lowered.mapped.graph, lowered.schedule);
  const std::vector<int64_t> bytes =
      BytesPerDevice(cost.profile(), lowered.mapped.graph, lowered.schedule);
  simulation.peak_bytes = *std::max_element(bytes.begin(), bytes.end());
  // What kernels' workspaces, and the gaps of the arena, add.
  simulation.memory.categories[static_cast<int>(MemoryCategory::kWorkspace)] +=
      simulation.peak_bytes - simulation.memory.bytes;
  simulation.memory.bytes = simulation.peak_bytes;
  plan->predicted_step_us = simulation.step_us;
  plan->predicted_peak_bytes = simulation.peak_bytes;
  return simulation;
}

}  // namespace isomer
