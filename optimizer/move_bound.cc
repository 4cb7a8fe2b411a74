#include "optimizer/move_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "pcg/schedule/builder.h"
#include "pcg/schedule/redistribution.h"

namespace isomer {
namespace {

// Of a send_receive, as task_time.h counts it: the latencies of the messages that one device
// receives at one level, and the time of the busiest link.
std::pair<double, double> LatencyAndLinkUs(const CostModel& cost, const Schedule& schedule,
                                           const Task& task) {
  const Machine& machine = cost.machine();
  std::map<std::pair<int, int32_t>, int> messages;
  std::map<LinkId, double> traffic;
  for (const auto& [read, write] : task.transfers) {
    const Buffer& from = schedule.buffers[task.reads[read]];
    const Buffer& to = schedule.buffers[task.writes[write]];
    const int level = cost.LevelBetween(from.device, to.device);
    if (level < 0) continue;
    ++messages[{level, to.device}];
    const double bytes =
        static_cast<double>(IntersectionVolume(from.box, to.box) * BytesPerElement(from.dtype));
    for (LinkId link : machine.Path(from.device, to.device)) traffic[link] += bytes;
  }
  double latency_us = 0, link_us = 0;
  for (const auto& [place, count] : messages) {
    latency_us = std::max(latency_us, count * machine.levels[place.first].latency_us);
  }
  for (const auto& [link, bytes] : traffic) {
    link_us = std::max(link_us, bytes / machine.link(link).bytes_per_us);
  }
  return {machine.launch_us() + latency_us, link_us};
}

}  // namespace

// Starts, then extents and strides of either side: copies, partials, and dims that are cut.
MoveBounds::Cuts MoveBounds::CutsOf(const Placement& from, const Placement& to) {
  const TensorType &f = from.type, &t = to.type;
  const int rank = f.rank();
  using Cut = std::array<int64_t, 4>;
  const auto cut = [&](int axis, int64_t from_extent, int64_t to_extent) -> Cut {
    return {from_extent, from_extent > 1 ? from.view.strides[axis] : 0, to_extent,
            to_extent > 1 ? to.view.strides[axis] : 0};
  };
  absl::InlinedVector<Cut, 6> dims;
  for (int i = 0; i < rank; ++i) {
    if (f.dims[i].degree > 1 || t.dims[i].degree > 1) {
      dims.push_back(cut(i, f.dims[i].degree, t.dims[i].degree));
    }
  }
  // Which dim is which does not matter.
  std::sort(dims.begin(), dims.end());
  Cuts cuts = {from.view.start, to.view.start};
  const auto add = [&](const Cut& c) { cuts.insert(cuts.end(), c.begin(), c.end()); };
  add(cut(rank, f.copies, t.copies));
  add(cut(rank + 1, f.partials, t.partials));
  for (const Cut& dim : dims) add(dim);
  return cuts;
}

std::vector<MoveBounds::MoveTask> MoveBounds::TasksOf(const Cuts& cuts) const {
  const int rank = static_cast<int>(cuts.size() - 10) / 4;
  Placement from, to;
  for (const bool is_to : {false, true}) {
    Placement& placement = is_to ? to : from;
    const int64_t* own = cuts.data() + 2 * is_to;
    placement.view.start = cuts[is_to];
    placement.type.dtype = DataType::kFloat32;
    for (int i = 0; i < rank; ++i) {
      const int64_t size = std::lcm(cuts[10 + 4 * i], cuts[12 + 4 * i]);
      placement.type.dims.push_back({size, own[10 + 4 * i]});
      placement.view.strides.push_back(own[11 + 4 * i]);
    }
    placement.type.copies = own[2];
    placement.type.partials = own[6];
    placement.view.strides.push_back(own[3]);
    placement.view.strides.push_back(own[7]);
  }
  Graph graph;
  const TensorRef x = graph.AddInput("x", from.type), y = graph.AddInput("y", to.type);
  const std::vector<MachineView> views = {from.view, to.view};
  ScheduleOptions options;
  options.num_devices = cost_.machine().num_devices();
  ScheduleBuilder builder(graph, views, options);
  const std::vector<int64_t> from_devices = DevicesOf(from.view, from.type);
  const std::vector<int64_t> to_devices = DevicesOf(to.view, to.type);
  std::vector<BufferId>& shards = builder.schedule().shards[x];
  for (size_t s = 0; s < from_devices.size(); ++s) {
    shards.push_back(
        builder.AddShard(BufferRole::kActivation, x, static_cast<int64_t>(s), from_devices[s]));
  }
  std::vector<ShardSource> sources;
  for (size_t s = 0; s < to_devices.size(); ++s) {
    const int64_t partial = CoordinatesOfShard(to.type, static_cast<int64_t>(s)).partial;
    sources.push_back(SourceInChain(x, from.type, to.type.partials, partial));
  }
  Redistribute(&builder, sources, y, to_devices);
  const double all_bytes =
      static_cast<double>(from.type.NumElements() * BytesPerElement(from.type.dtype));
  std::vector<MoveTask> tasks;
  for (const Task& task : builder.schedule().tasks) {
    if (!IsCommunication(task.kind)) continue;
    MoveTask move;
    move.kind = task.kind;
    move.devices.assign(task.devices.begin(), task.devices.end());
    move.bytes = static_cast<double>(task.bytes) / all_bytes;
    if (task.kind == TaskKind::kSendReceive) {
      const auto [latency_us, link_us] = LatencyAndLinkUs(cost_, builder.schedule(), task);
      move.latency_us = latency_us;
      move.bytes = link_us / all_bytes;
    }
    for (BufferId id : task.writes) move.to_first |= builder.buffer(id).device == 0;
    tasks.push_back(std::move(move));
  }
  return tasks;
}

double MoveBounds::UsOf(const MoveTask& task, double bytes) const {
  if (task.kind == TaskKind::kSendReceive) return task.latency_us + task.bytes * bytes;
  const int64_t task_bytes = std::llround(task.bytes * bytes);
  if (const auto us = cost_.MeasuredUs(task.kind, task_bytes, task.devices)) return *us;
  const auto collective_us = [&](Collective kind) {
    return cost_.CollectiveUs(kind, task_bytes, task.devices);
  };
  switch (task.kind) {
    case TaskKind::kAllReduce:
      return collective_us(Collective::kAllReduce);
    case TaskKind::kReduceScatter:
      return collective_us(Collective::kReduceScatter);
    case TaskKind::kAllGather:
      return collective_us(Collective::kAllGather);
    case TaskKind::kAllToAll:
      return collective_us(Collective::kAllToAll);
    default:
      return 0;
  }
}

MoveBounds::Us MoveBounds::Of(const Placement& from, const Placement& to) {
  if (from == to) return {};
  const auto [it, added] = tasks_.try_emplace(CutsOf(from, to));
  if (added) it->second = TasksOf(it->first);
  const double bytes =
      static_cast<double>(from.type.NumElements() * BytesPerElement(from.type.dtype));
  Us us;
  for (const MoveTask& task : it->second) {
    const double task_us = UsOf(task, bytes);
    us.anywhere = std::max(us.anywhere, task_us);
    if (task.to_first) us.first = std::max(us.first, task_us);
  }
  return us;
}

}  // namespace isomer
