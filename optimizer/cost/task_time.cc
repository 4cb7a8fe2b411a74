#include "optimizer/cost/task_time.h"

#include <algorithm>
#include <utility>

#include "optimizer/cost/traffic.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/packing.h"

namespace isomer {
namespace {

// Sums the non-negative amounts of each key; returns the maximum of us_of(key, sum).
template <typename Amount, typename UsOf>
double GreatestSum(std::vector<std::pair<int64_t, Amount>>* list, UsOf us_of) {
  int64_t last = -1;
  for (const auto& [key, amount] : *list) last = std::max(last, key);
  double greatest = 0;
  if (last < static_cast<int64_t>(list->size())) {
    std::vector<Amount> sums(last + 1, 0);
    for (const auto& [key, amount] : *list) sums[key] += amount;
    for (int64_t key = 0; key <= last; ++key) greatest = std::max(greatest, us_of(key, sums[key]));
    return greatest;
  }
  // Stable: amounts of one key are added in the same order.
  std::stable_sort(list->begin(), list->end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t begin = 0, end; begin < list->size(); begin = end) {
    Amount sum = 0;
    const int64_t key = (*list)[begin].first;
    for (end = begin; end < list->size() && (*list)[end].first == key; ++end) {
      sum += (*list)[end].second;
    }
    greatest = std::max(greatest, us_of(key, sum));
  }
  return greatest;
}

// Whether a node's devices share such a link of a path: the outermost are those of single devices,
// if there are others between them.
bool IsShared(size_t link, size_t size) { return size == 2 || (link > 0 && link + 1 < size); }

}  // namespace

SendReceiveParts PartsOfSendReceive(const CostModel& cost, const Schedule& schedule,
                                    const Task& task) {
  const Machine& machine = cost.machine();
  SendReceiveParts parts;
  const auto num_levels = static_cast<int64_t>(machine.levels.size());
  std::vector<std::pair<int64_t, int64_t>> messages;  // by receiver and level
  std::vector<std::pair<int64_t, double>> traffic;    // by link
  for (size_t i = 0; i < task.transfers.size(); ++i) {
    const Buffer& from = schedule.buffers[task.reads[task.transfers[i].first]];
    const Buffer& to = schedule.buffers[task.writes[task.transfers[i].second]];
    const int level = cost.LevelBetween(from.device, to.device);
    if (level < 0) continue;
    const bool leaves_node = level + 1 == static_cast<int>(machine.levels.size());
    if (leaves_node && task.whole < 0) {
      parts.in_turn = std::max(parts.in_turn, SendersInTurn(machine, schedule, from.device));
    }
    const Schedule::Whole::Count count = schedule.CountOf(task, i);
    const int64_t bytes = IntersectionVolume(from.box, to.box) * BytesPerElement(from.dtype);
    messages.push_back({to.device * num_levels + level, count.received});
    const LinkPath path = machine.Path(from.device, to.device);
    for (size_t l = 0; l < path.size(); ++l) {
      int64_t sharers = 1;
      if (leaves_node && IsShared(l, path.size())) {
        sharers = 2 * l < path.size() ? count.senders : count.receivers;
      }
      traffic.emplace_back(path[l],
                           static_cast<double>(bytes * OnPath(count, l, path.size()) * sharers));
    }
  }
  parts.latency_us = GreatestSum(&messages, [&](int64_t place, int64_t count) {
    return machine.LatencyUs(static_cast<int>(place % num_levels), count);
  });
  parts.link_us = GreatestSum(&traffic, [&](int64_t link, double bytes) {
    return bytes == 0 ? 0 : bytes / machine.link(static_cast<LinkId>(link)).bytes_per_us;
  });
  return parts;
}

namespace {

double PackingUs(const CostModel& cost, const Schedule& schedule, const Task& task) {
  const PackBytes most = MostPacked(schedule, task);
  return cost.PackingUs(most.send, most.receive);
}

TaskTime SendReceiveTime(const CostModel& cost, const Schedule& schedule, const Task& task) {
  const SendReceiveParts parts = PartsOfSendReceive(cost, schedule, task);
  const double links_us = static_cast<double>(parts.in_turn) * parts.link_us;
  const double beyond_us =
      cost.machine().message_start_us() + parts.latency_us + PackingUs(cost, schedule, task);
  return {links_us + beyond_us, TimeOrigin::kRoofline, beyond_us};
}

// The operands whose gradients the task computes; empty for other tasks.
std::vector<bool> WantedOf(const Task& task) {
  std::vector<bool> wanted;
  if (task.kind != TaskKind::kComputeGradient) return wanted;
  for (BufferId id : task.writes) wanted.push_back(id != kNoBuffer);
  return wanted;
}

// Optimizer states on the host are read and written there, one direction at a time.
TaskTime UpdateTime(const CostModel& cost, const Schedule& schedule, const Task& task) {
  int64_t host_bytes = 0;
  for (BufferId id : task.writes) {
    const Buffer& buffer = schedule.buffers[id];
    if (IsOnHost(schedule, buffer)) host_bytes += 2 * buffer.bytes();
  }
  TaskTime time = cost.ElementwiseTime(TaskKind::kUpdate, task.bytes - host_bytes, task.devices[0]);
  // Products of matrices, behind what is a pass over all numbers.
  if (TraitsOf(schedule.options.update.optimizer).needs == UpdateNeeds::kMatrix) {
    time.us += cost.ComputeUs(task.flops, 0, DataType::kFloat32, task.devices[0]);
  }
  if (host_bytes == 0) return time;
  const double rate = cost.machine().kind(task.devices[0]).host_bytes_per_us;
  time.us = std::max(time.us, cost.machine().launch_us() + static_cast<double>(host_bytes) / rate);
  return time;
}

// At the rate of the bus between device and host. Machines that name none are those whose devices
// are the host's own cores: a copy like others.
TaskTime HostCopyTime(const CostModel& cost, const Task& task) {
  const double rate = cost.machine().kind(task.devices[0]).host_bytes_per_us;
  if (rate == 0) return cost.ElementwiseTime(TaskKind::kLocal, 2 * task.bytes, task.devices[0]);
  return {cost.machine().launch_us() + static_cast<double>(task.bytes) / rate,
          TimeOrigin::kRoofline};
}

TaskTime CommunicationTime(const CostModel& cost, const Schedule& schedule, const Task& task) {
  const absl::Span<const int32_t> devices = schedule.GroupOf(task);
  if (const auto us = cost.MeasuredUs(task.kind, task.bytes, devices)) {
    // These were measured unpacked, others packed (runtime/profiler/profile_tasks.h).
    const bool is_bare = task.kind == TaskKind::kReduceScatter || task.kind == TaskKind::kAllGather;
    return {*us + (is_bare ? PackingUs(cost, schedule, task) : 0), TimeOrigin::kMeasured};
  }
  const std::optional<Collective> collective = CollectiveOf(task.kind);
  if (!collective.has_value()) return SendReceiveTime(cost, schedule, task);
  const double packing_us = PackingUs(cost, schedule, task);
  return {cost.CollectiveUs(*collective, task.bytes, devices) + packing_us, TimeOrigin::kRoofline,
          packing_us};
}

}  // namespace

int64_t SendersInTurn(const Machine& machine, const Schedule& schedule, int32_t device) {
  const std::vector<int32_t>& there = schedule.represented;
  const int64_t node_size = machine.devices_per_node(), first = device / node_size * node_size;
  const auto begin = std::lower_bound(there.begin(), there.end(), first);
  const auto end = std::lower_bound(begin, there.end(), first + node_size);
  if (begin == end || *(end - 1) != device) return 1;
  return node_size - (end - begin) + 1;
}

TaskTime TimeOfTask(const CostModel& cost, const Graph& graph, const Schedule& schedule,
                    const Task& task) {
  if (task.phase == Phase::kLoad || task.is_view)
    return {};  // Loading precedes the first step; views are free.
  switch (task.kind) {
    case TaskKind::kLoad:
    case TaskKind::kFeed:
    case TaskKind::kUnload:
      return {};
    case TaskKind::kCompute:
    case TaskKind::kComputeGradient: {
      std::vector<TensorType> operands;
      for (TensorRef input : graph.node(task.node).inputs) operands.push_back(graph.type(input));
      TaskTime time = cost.CallTime(graph.node(task.node).op, operands, WantedOf(task),
                                    {task.flops, task.bytes}, task.devices[0]);
      for (size_t w = 0; w < task.writes.size(); ++w) {
        const int64_t bytes = ExtraBytes(graph, schedule, task, w);
        if (bytes > 0) time.us += cost.AddingUs(bytes, task.devices[0]);
      }
      return time;
    }
    case TaskKind::kFill:
    case TaskKind::kAccumulate:
    case TaskKind::kLocal:
      return cost.ElementwiseTime(task.kind, task.bytes, task.devices[0]);
    case TaskKind::kConvert:  // A copy, but for its types.
      return cost.ElementwiseTime(TaskKind::kLocal, task.bytes, task.devices[0]);
    case TaskKind::kOffload:
    case TaskKind::kFetch:
      return HostCopyTime(cost, task);
    case TaskKind::kUpdate:
      return UpdateTime(cost, schedule, task);
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

TaskTimes::TaskTimes(const CostModel& cost, const Graph& graph, const Schedule& schedule)
    : cost_(cost),
      graph_(graph),
      schedule_(schedule),
      one_kind_(cost.machine().kinds_in_use().size() == 1),
      calls_(graph.num_nodes()) {}

TaskTime TaskTimes::CallTime(const Task& task) {
  const int device_kind = one_kind_ ? 0 : cost_.machine().kind_index(task.devices[0]);
  std::vector<Call>& calls = calls_[task.node.value];
  const size_t wanted = task.kind == TaskKind::kComputeGradient ? task.writes.size() : 0;
  int64_t extra_bytes = 0;
  for (size_t o = 0; o < wanted; ++o) {
    extra_bytes += ExtraBytes(graph_, schedule_, task, o);
  }
  const auto known = std::find_if(calls.begin(), calls.end(), [&](const Call& call) {
    if (call.device_kind != device_kind || call.work.flops != task.flops ||
        call.work.bytes != task.bytes || call.extra_bytes != extra_bytes ||
        call.wanted.size() != wanted) {
      return false;
    }
    for (size_t o = 0; o < wanted; ++o) {
      if (call.wanted[o] != (task.writes[o] != kNoBuffer)) return false;
    }
    return true;
  });
  if (known != calls.end()) return known->time;
  calls.push_back({.wanted = WantedOf(task),
                   .device_kind = device_kind,
                   .work = {task.flops, task.bytes},
                   .extra_bytes = extra_bytes,
                   .time = TimeOfTask(cost_, graph_, schedule_, task)});
  return calls.back().time;
}

TaskTime TaskTimes::CollectiveTime(const Task& task) {
  const auto [time, added] =
      collectives_.try_emplace(Group{task.kind, task.bytes, task.segments, task.whole,
                                     task.whole < 0 ? task.devices : SmallList<int32_t, 4>(),
                                     MostPacked(schedule_, task).total()});
  if (added) time->second = TimeOfTask(cost_, graph_, schedule_, task);
  return time->second;
}

TaskTime TaskTimes::Of(const Task& task) {
  if (task.is_view) return {};
  const bool in_step = task.phase != Phase::kLoad;
  if (in_step && IsOfKernel(task.kind)) {
    return CallTime(task);
  }
  if (in_step && IsCommunication(task.kind) && task.kind != TaskKind::kSendReceive) {
    return CollectiveTime(task);
  }
  return TimeOfTask(cost_, graph_, schedule_, task);
}

}  // namespace isomer
