#include "pcg/schedule/memory/additions.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/views.h"

namespace isomer {
namespace {

constexpr int32_t kNever = -1;

class Marker {
 public:
  Marker(const Graph& graph, Schedule* schedule)
      : graph_(graph),
        schedule_(*schedule),
        holders_(HoldersOf(*schedule)),
        written_(schedule->buffers.size(), kNever),
        touched_(written_),
        uses_(schedule->buffers.size(), 0) {
    for (const Task& task : schedule_.tasks) {
      ForEachBuffer(task, [this](BufferId id) { ++uses_[id]; });
    }
  }

  void Run() {
    for (int32_t t = 0; t < static_cast<int32_t>(schedule_.tasks.size()); ++t) {
      Task& task = schedule_.tasks[t];
      if (IsOfSum(task.kind)) Mark(&task);
      ForEachBuffer(task, [&](BufferId id) { touched_[holders_[id]] = t; });
      for (BufferId id : task.writes) {
        if (id != kNoBuffer) written_[id] = t;
      }
    }
  }

 private:
  template <typename F>
  static void ForEachBuffer(const Task& task, F f) {
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id != kNoBuffer) f(id);
      }
    }
  }

  // An accumulation, or a conversion.
  void Mark(Task* task) {
    const BufferId share = task->reads[0], sum = task->writes[0];
    const int32_t made = written_[share];
    constexpr int kMadeAndRead = 2;
    if (made == kNever || uses_[share] != kMadeAndRead) return;
    Task& call = schedule_.tasks[made];
    if (call.kind != TaskKind::kComputeGradient || call.is_view) return;
    const Buffer& to = schedule_.buffers[sum];
    Buffer& from = schedule_.buffers[share];
    const bool fits = BytesPerElement(to.dtype) >= BytesPerElement(from.dtype) &&
                      to.box == from.box && to.layout == from.layout && to.role == from.role;
    if (!fits || KeepsOrder(graph_.node(call.node).op, to.box.shape)) return;
    if (task->kind == TaskKind::kAccumulate && !AddAtOnce(made, share, sum)) return;
    from.dtype = to.dtype;
    task->is_view = true;
  }

  // Whether the call may, which it then does.
  bool AddAtOnce(int32_t made, BufferId share, BufferId sum) {
    const int32_t summed = written_[sum];
    Task& call = schedule_.tasks[made];
    const size_t w = absl::c_find(call.writes, share) - call.writes.begin();
    if (summed == kNever || IsCommunication(schedule_.tasks[summed].kind) ||
        touched_[holders_[sum]] >= made || w >= kMostAdditions) {
      return false;
    }
    call.adds |= uint32_t{1} << w;
    if (!absl::c_linear_search(call.deps, summed)) {
      call.deps.push_back(summed);
      absl::c_sort(call.deps);
    }
    return true;
  }

  const Graph& graph_;
  Schedule& schedule_;
  const std::vector<BufferId> holders_;
  std::vector<int32_t> written_, touched_;  // by buffer, by holder: the last task
  std::vector<int> uses_;
};

}  // namespace

void MarkAdditions(const Graph& graph, Schedule* schedule) {
  if (schedule->options.training) Marker(graph, schedule).Run();
}

std::vector<BufferId> SumsInPlace(const Schedule& schedule) {
  std::vector<BufferId> sums(schedule.buffers.size(), kNoBuffer);
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kAccumulate || !task.is_view) continue;
    if (!task.reads.empty() && !task.writes.empty() && task.reads[0] != kNoBuffer) {
      sums[task.reads[0]] = task.writes[0];
    }
  }
  return sums;
}

int64_t ExtraBytes(const Graph& graph, const Schedule& schedule, const Task& task, size_t w) {
  if (task.kind != TaskKind::kComputeGradient || task.writes[w] == kNoBuffer) return 0;
  const Buffer& sum = schedule.buffers[task.writes[w]];
  const DataType operand = graph.type(graph.node(task.node).inputs[w]).dtype;
  if (!Adds(task, w) && sum.dtype == operand) return 0;
  return (Adds(task, w) ? 2 : 1) * sum.bytes() - sum.box.Volume() * BytesPerElement(operand);
}

}  // namespace isomer
