#include "optimizer/bound/move_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "optimizer/cost/task_time.h"
#include "optimizer/simulator/move_fragment.h"

namespace isomer {

std::vector<MoveBounds::MoveTask> MoveBounds::TasksOf(const MoveCuts& cuts) const {
  // The layout of CutsOfMove.
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
  LowerMove(x, y, DevicesOf(from.view, from.type), DevicesOf(to.view, to.type), &builder);
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
      const SendReceiveParts parts = PartsOfSendReceive(cost_, builder.schedule(), task);
      move.latency_us = cost_.machine().message_start_us() + parts.latency_us;
      move.bytes = parts.link_us / all_bytes;
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
  const std::optional<Collective> collective = CollectiveOf(task.kind);
  return collective.has_value() ? cost_.CollectiveUs(*collective, task_bytes, task.devices) : 0;
}

MoveBounds::Us MoveBounds::Of(const Placement& from, const Placement& to) {
  if (from == to) return {};
  const auto [it, added] = tasks_.try_emplace(CutsOfMove(from, to));
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
