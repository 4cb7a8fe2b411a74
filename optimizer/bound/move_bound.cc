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
  const int rank = static_cast<int>(cuts.size() - 2) / kNumbersOfCut - 2;
  Placement from, to;
  for (const bool is_to : {false, true}) {
    auto& [type, view] = is_to ? to : from;
    view.start = cuts[is_to];
    type.dtype = DataType::kFloat32;
    // Of the cut, on one side or the other.
    const auto numbers = [&cuts](int cut, bool after) {
      return cuts.data() + 2 + cut * kNumbersOfCut + after * kNumbersOfCut / 2;
    };
    const auto add_axis = [&, &placed = view](int cut) {
      const int64_t* const own = numbers(cut, is_to);
      const auto axis = static_cast<int>(placed.strides.size());
      placed.strides.push_back(own[1]);
      if (own[2] > 0) placed.outer.push_back({axis, own[2], own[3]});
    };
    for (int cut = 2; cut < rank + 2; ++cut) {
      type.dims.push_back(
          {std::lcm(numbers(cut, false)[0], numbers(cut, true)[0]), numbers(cut, is_to)[0]});
      add_axis(cut);
    }
    type.copies = numbers(0, is_to)[0];
    type.partials = numbers(1, is_to)[0];
    add_axis(0);
    add_axis(1);
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
