#include "pcg/schedule/memory/views.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

// What a view would read and write.
struct Ends {
  BufferId from = kNoBuffer, to = kNoBuffer;
};

// What a call of one operand is a view of, if it is one: the operand, or the gradient of the
// result.
BufferId ReadByView(const Task& task) {
  if (task.reads.empty()) return kNoBuffer;
  return task.reads[task.kind == TaskKind::kComputeGradient ? task.reads.size() - 1 : 0];
}

class Eligibility {
 public:
  Eligibility(const Graph& graph, const Schedule& schedule)
      : graph_(graph), schedule_(schedule), in_row_(schedule.buffers.size(), false) {
    for (const Schedule::HostTensor& parameter : schedule.parameters) {
      stored_.insert(parameter.tensor);
    }
    for (const std::vector<BufferId>& row : RowsOf(schedule)) {
      for (BufferId id : row) in_row_[id] = true;
    }
  }

  // Of a task that may be a view as far as it is concerned; else none.
  Ends EndsOf(const Task& task) const {
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    if ((!gradient && task.kind != TaskKind::kCompute) || task.writes.size() != 1 ||
        task.writes[0] == kNoBuffer) {
      return {};
    }
    const Ends ends = {ReadByView(task), task.writes[0]};
    if (ends.from == kNoBuffer || in_row_[ends.from] || in_row_[ends.to]) return {};
    const Buffer &from = schedule_.buffers[ends.from], &to = schedule_.buffers[ends.to];
    // The operand, whose gradient has its box.
    const Buffer& operand = gradient ? to : from;
    if (from.layout != Layout::kRowMajor || to.layout != Layout::kRowMajor) return {};
    if (from.device != to.device || from.dtype != to.dtype || from.bytes() != to.bytes() ||
        IsKept(from) || IsKept(to) || !KeepsOrder(graph_.node(task.node).op, operand.box.shape)) {
      return {};
    }
    return ends;
  }

 private:
  bool IsKept(const Buffer& buffer) const {
    const bool is_role =
        buffer.role == BufferRole::kInput || buffer.role == BufferRole::kActivation ||
        buffer.role == BufferRole::kReceived || buffer.role == BufferRole::kGradient;
    return !is_role || stored_.contains(buffer.tensor);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  std::set<TensorRef> stored_;
  std::vector<bool> in_row_;
};

BufferId HolderOf(std::vector<BufferId>* holders, BufferId id) {
  while ((*holders)[id] != id) id = (*holders)[id] = (*holders)[(*holders)[id]];
  return id;
}

std::vector<BufferId> EachItsOwn(const Schedule& schedule) {
  std::vector<BufferId> holders(schedule.buffers.size());
  std::iota(holders.begin(), holders.end(), 0);
  return holders;
}

}  // namespace

void MarkViews(const Graph& graph, Schedule* schedule) {
  const Eligibility eligibility(graph, *schedule);
  constexpr int32_t kNever = -1;
  // The first task that writes a buffer, and the last that writes and reads it; of those that are
  // joined, those of the holder are those of all, but that views write nothing.
  std::vector<int32_t> made(schedule->buffers.size(), kNever), written = made, read = made;
  std::vector<Ends> ends(schedule->tasks.size());
  for (int32_t t = 0; t < static_cast<int32_t>(schedule->tasks.size()); ++t) {
    const Task& task = schedule->tasks[t];
    ends[t] = eligibility.EndsOf(task);
    for (BufferId id : task.reads) {
      if (id != kNoBuffer) read[id] = t;
    }
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      if (made[id] == kNever) made[id] = t;
      written[id] = t;
    }
  }
  std::vector<BufferId> holders = EachItsOwn(*schedule);
  for (int32_t t = 0; t < static_cast<int32_t>(schedule->tasks.size()); ++t) {
    const auto [from, to] = ends[t];
    if (from == kNoBuffer) continue;
    const BufferId holder = HolderOf(&holders, from);
    const bool changes_later = written[to] > t;
    if (made[to] != t || written[holder] >= t || (changes_later && read[holder] > t)) continue;
    schedule->tasks[t].is_view = true;
    holders[to] = holder;
    if (changes_later) written[holder] = written[to];
    read[holder] = std::max(read[holder], read[to]);
  }
}

std::vector<BufferId> HoldersOf(const Schedule& schedule) {
  std::vector<BufferId> holders = EachItsOwn(schedule);
  bool carries = false;
  for (const Task& task : schedule.tasks) {
    if (!task.is_view || task.writes.empty()) continue;
    const BufferId from = ReadByView(task), to = task.writes[0];
    if (from == kNoBuffer || to == kNoBuffer) continue;
    if (IsOfSum(task.kind)) {
      holders[from] = holders[to];
    } else if (IsCarry(schedule, task)) {
      holders[holders[from]] = to;
      carries = true;
    } else {
      holders[to] = holders[from];
    }
  }
  // What was a view of the next value of a state lies in the state's place, too.
  for (size_t id = 0; carries && id < holders.size(); ++id) holders[id] = holders[holders[id]];
  return holders;
}

namespace {

// Why what the call that made it has added up, or converted, does not lie where the sum does;
// empty: it may.
std::string WhyNotAdded(const Schedule& schedule, const Task& task,
                        const std::vector<BufferId>& sums) {
  if (task.reads.size() != 1 || task.writes.size() != 1 || task.reads[0] == kNoBuffer ||
      task.writes[0] == kNoBuffer || task.reads[0] == task.writes[0]) {
    return "is no view of what it reads";
  }
  const Buffer &share = schedule.buffers[task.reads[0]], &sum = schedule.buffers[task.writes[0]];
  const bool fits = share.device == sum.device && share.dtype == sum.dtype &&
                    share.box == sum.box && share.layout == sum.layout &&
                    share.role == BufferRole::kGradient && sum.role == BufferRole::kGradient &&
                    sums[task.writes[0]] == kNoBuffer;  // Shares are no sums.
  return fits ? "" : "is no view: what it reads cannot lie where its sum does";
}

// Why a task may not write so, of which `sum` is the sum that lies where write `w` does; empty: it
// may.
std::string WhyNotWritten(const Task& task, size_t w, BufferId sum,
                          const std::vector<BufferId>& holders) {
  const BufferId id = task.writes[w];
  if (sum == kNoBuffer) {
    return Adds(task, w)
               ? absl::StrCat("adds to buffer ", id, ", which lies in the place of no sum")
               : "";
  }
  if (!Adds(task, w)) {
    return absl::StrCat("writes buffer ", id, " in the place of what it is added to");
  }
  for (BufferId read : task.reads) {
    if (read != kNoBuffer && holders[read] == holders[id]) {
      return absl::StrCat("reads buffer ", read, " and adds to its bytes");
    }
  }
  return "";
}

// Why a call may not write over what it reads; empty: it may, or does not.
std::string WhyNotWrittenOver(const Graph& graph, const Task& task,
                              const std::vector<BufferId>& holders,
                              const std::vector<bool>& shares) {
  if (task.kind != TaskKind::kCompute) return "";
  for (BufferId id : task.writes) {
    if (id == kNoBuffer || !shares[id]) continue;
    const int in_place = OperandInPlace(graph.node(task.node).op);
    for (size_t o = 0; o < task.reads.size(); ++o) {
      if (holders[task.reads[o]] != holders[id] || static_cast<int>(o) == in_place) continue;
      return absl::StrCat("writes over buffer ", task.reads[o], " while it reads it");
    }
  }
  return "";
}

}  // namespace

absl::Status CheckViews(const Graph& graph, const Schedule& schedule) {
  const Eligibility eligibility(graph, schedule);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  const std::vector<BufferId> sums = SumsInPlace(schedule);
  std::vector<bool> shares(schedule.buffers.size(), false);
  for (size_t id = 0; id < holders.size(); ++id) {
    if (holders[id] != static_cast<BufferId>(id)) shares[id] = shares[holders[id]] = true;
  }
  // Per holder whose bytes others share, the buffers that are what its bytes are.
  absl::flat_hash_map<BufferId, std::set<BufferId>> present;
  for (size_t id = 0; id < holders.size(); ++id) {
    if (shares[id] && schedule.buffers[id].role == BufferRole::kInput) {
      present[holders[id]].insert(static_cast<BufferId>(id));
    }
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const auto error = [&](const std::string& what) {
      return absl::FailedPreconditionError(absl::StrCat("schedule: task ", t, " (",
                                                        TaskKindName(task.kind), " ",
                                                        graph.Label(task.node), "): ", what));
    };
    const auto is_present = [&](BufferId id) {
      return id == kNoBuffer || !shares[id] || present[holders[id]].contains(id);
    };
    for (BufferId id : task.reads) {
      if (!is_present(id))
        return error(absl::StrCat("reads buffer ", id, ", which is overwritten"));
      if (id != kNoBuffer && sums[id] != kNoBuffer && task.kind != TaskKind::kAccumulate) {
        return error(absl::StrCat("reads buffer ", id, ", which is part of a sum by then"));
      }
    }
    const bool may_add = task.kind == TaskKind::kComputeGradient && !task.is_view;
    const bool adds_to_writes =
        task.writes.size() >= kMostAdditions || task.adds >> task.writes.size() == 0;
    if (task.adds != 0 && !(may_add && adds_to_writes)) {
      return error("adds to what it does not write");
    }
    if (task.is_view && IsOfSum(task.kind)) {
      const std::string wrong = WhyNotAdded(schedule, task, sums);
      if (!wrong.empty()) return error(wrong);
      present[holders[task.writes[0]]] = {task.writes[0]};
      continue;
    }
    if (task.is_view && IsCarry(schedule, task)) {
      const std::string wrong = WhyNotCarriedInPlace(schedule, task);
      if (!wrong.empty()) return error(wrong);
      present[holders[task.writes[0]]].insert(task.writes[0]);
      continue;
    }
    if (task.is_view) {
      const Ends ends = eligibility.EndsOf(task);
      if (ends.from == kNoBuffer) return error("is no view of what it reads");
      present[holders[ends.from]].insert(ends.to);
      continue;
    }
    for (size_t w = 0; w < task.writes.size(); ++w) {
      const BufferId id = task.writes[w], sum = id == kNoBuffer ? kNoBuffer : sums[id];
      const std::string wrong = WhyNotWritten(task, w, sum, holders);
      if (!wrong.empty()) return error(wrong);
      if (!is_present(sum)) {
        return error(absl::StrCat("adds to buffer ", sum, ", which is not there"));
      }
    }
    const std::string over = WhyNotWrittenOver(graph, task, holders, shares);
    if (!over.empty()) return error(over);
    for (BufferId id : task.writes) {
      if (id == kNoBuffer || !shares[id]) continue;
      if (task.kind == TaskKind::kAccumulate && !is_present(id)) {
        return error(absl::StrCat("adds to buffer ", id, ", which is overwritten"));
      }
      present[holders[id]] = {id};
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
