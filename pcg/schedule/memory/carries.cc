#include "pcg/schedule/memory/carries.h"

#include <algorithm>

#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"

namespace isomer {
namespace {

// What is done to the bytes of a piece of memory, by tasks that are no views.
struct Uses {
  int32_t first_write = -1, last_write = -1, last_read = -1;
};

// By holder.
std::vector<Uses> UsesOf(const Schedule& schedule, const std::vector<BufferId>& holders) {
  std::vector<Uses> uses(schedule.buffers.size());
  for (int32_t t = 0; t < static_cast<int32_t>(schedule.tasks.size()); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.is_view) continue;
    for (BufferId id : task.reads) {
      if (id != kNoBuffer) uses[holders[id]].last_read = t;
    }
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      Uses& of = uses[holders[id]];
      if (of.first_write < 0) of.first_write = t;
      of.last_write = t;
    }
  }
  return uses;
}

// The call that makes a state reads it as it was at operand OperandInPlace alone.
bool WritesOver(const Graph& graph, const Task& maker, BufferId state,
                const std::vector<BufferId>& holders) {
  if (maker.kind != TaskKind::kCompute || maker.writes.size() != 1) return false;
  const int in_place = OperandInPlace(graph.node(maker.node).op);
  for (size_t o = 0; o < maker.reads.size(); ++o) {
    if (holders[maker.reads[o]] == state && static_cast<int>(o) != in_place) return false;
  }
  return true;
}

}  // namespace

int OperandInPlace(const Operator& op) {
  return op.kind() == OpKind::kScatterElements && op.Int("reduction") == 0 ? 0 : -1;
}

std::string WhyNotCarriedInPlace(const Schedule& schedule, const Task& task) {
  if (task.kind != TaskKind::kLocal || task.reads.size() != 1 || task.writes.size() != 1) {
    return "is no view: it moves between devices, or several pieces";
  }
  const Buffer &next = schedule.buffers[task.reads[0]], &state = schedule.buffers[task.writes[0]];
  const bool fits = next.device == state.device && next.dtype == state.dtype &&
                    next.box == state.box && next.layout == Layout::kRowMajor &&
                    state.layout == Layout::kRowMajor && next.role == BufferRole::kActivation &&
                    state.role == BufferRole::kInput;
  return fits ? "" : "is no view: what it reads cannot lie where the state does";
}

void MarkCarries(const Graph& graph, Schedule* schedule) {
  const auto is_carry = [&](const Task& task) { return IsCarry(*schedule, task); };
  if (std::none_of(schedule->tasks.begin(), schedule->tasks.end(), is_carry)) return;
  std::vector<bool> in_row(schedule->buffers.size(), false);
  for (const std::vector<BufferId>& row : RowsOf(*schedule)) {
    for (BufferId id : row) in_row[id] = true;
  }
  const std::vector<BufferId> holders = HoldersOf(*schedule);
  const std::vector<Uses> uses = UsesOf(*schedule, holders);
  std::vector<bool> has_place(schedule->buffers.size(), false);  // another state's
  for (Task& task : schedule->tasks) {
    if (!is_carry(task) || !WhyNotCarriedInPlace(*schedule, task).empty()) continue;
    const BufferId state = holders[task.writes[0]], next = holders[task.reads[0]];
    const Uses &before = uses[state], &after = uses[next];
    const int32_t made = after.first_write;
    const int32_t t = static_cast<int32_t>(&task - schedule->tasks.data());
    if (state != task.writes[0] || in_row[state] || in_row[next] || has_place[next] ||
        schedule->buffers[next].role != BufferRole::kActivation || made < 0 ||
        after.last_write != made || before.last_write != t || before.last_read > made ||
        schedule->buffers[next].bytes() != schedule->buffers[state].bytes()) {
      continue;
    }
    if (before.last_read == made && !WritesOver(graph, schedule->tasks[made], state, holders)) {
      continue;
    }
    task.is_view = true;
    has_place[next] = true;
  }
}

}  // namespace isomer
