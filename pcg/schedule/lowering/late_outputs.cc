#include "pcg/schedule/lowering/late_outputs.h"

#include <algorithm>
#include <utility>

namespace isomer {

LateOutputs::LateOutputs(ScheduleBuilder* builder, const Recomputation& recomputation)
    : builder_(*builder) {
  Schedule& schedule = builder_.schedule();
  std::vector<Task>& tasks = schedule.tasks;
  if (schedule.num_moments > 1) return;
  std::vector<int> readers(schedule.buffers.size(), 0);
  std::vector<NodeId> maker(schedule.buffers.size());
  for (const Task& task : tasks) {
    for (BufferId id : task.reads) ++readers[id];
    for (BufferId id : task.writes) {
      maker[id] = task.kind == TaskKind::kCompute ? task.node : NodeId();
      if (task.kind == TaskKind::kCompute || task.reads.empty()) continue;
      for (BufferId from : task.reads) maker[id] = std::max(maker[id], maker[from]);
    }
  }
  size_t first = tasks.size();
  for (; first > 0; --first) {
    const Task& task = tasks[first - 1];
    const bool is_late =
        (IsCommunication(task.kind) || task.kind == TaskKind::kLocal) &&
        std::all_of(task.writes.begin(), task.writes.end(),
                    [&](BufferId id) { return readers[id] == 0 && maker[id] != NodeId(); }) &&
        std::none_of(task.reads.begin(), task.reads.end(),
                     [&](BufferId id) { return recomputation.IsDropped(id); });
    if (!is_late) break;
    for (BufferId id : task.reads) --readers[id];
  }
  for (size_t t = first; t < tasks.size(); ++t) {
    tasks_[maker[tasks[t].writes[0]]].push_back(std::move(tasks[t]));
  }
  tasks.resize(first);
}

void LateOutputs::AddBehind(NodeId node) {
  const auto late = tasks_.find(node);
  if (late == tasks_.end()) return;
  for (Task& task : late->second) builder_.schedule().tasks.push_back(std::move(task));
  tasks_.erase(late);
}

}  // namespace isomer
