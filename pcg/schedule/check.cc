#include "pcg/schedule/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/builder.h"
#include "pcg/schedule/check_calls.h"
#include "pcg/schedule/memory.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class Checker {
 public:
  Checker(const Graph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {}

  absl::Status Run() {
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      ISOMER_RETURN_IF_ERROR(CheckShape(static_cast<int32_t>(t)));
    }
    ISOMER_RETURN_IF_ERROR(CheckPrograms());
    ISOMER_RETURN_IF_ERROR(RunPrograms());
    ISOMER_RETURN_IF_ERROR(CheckUpdates());
    ISOMER_RETURN_IF_ERROR(CheckCalls(graph_, schedule_));
    return CheckMemory();
  }

 private:
  absl::Status Error(int32_t t, absl::string_view what) const {
    const Task& task = schedule_.tasks[t];
    const bool known = task.node.value >= 0 && task.node.value < graph_.num_nodes();
    return absl::FailedPreconditionError(
        absl::StrCat("schedule: task ", t, " (", TaskKindName(task.kind), " of ",
                     known ? graph_.Label(task.node) : "an unknown node", "): ", what));
  }

  absl::Status CheckShape(int32_t t) const;
  absl::Status CheckCollective(int32_t t) const;
  absl::Status CheckPrograms() const;
  absl::Status RunPrograms();
  absl::Status Execute(int32_t t);
  absl::Status CheckUpdates() const;
  absl::Status CheckMemory() const;

  const Graph& graph_;
  const Schedule& schedule_;
  std::vector<int32_t> executed_;  // tasks, in an order that the programs allow
  std::vector<int32_t> position_;  // by task, in executed_
  // By buffer; read_ by tasks other than those that change it in place.
  std::vector<bool> written_, read_, updated_;
};

absl::Status Checker::CheckShape(int32_t t) const {
  const Task& task = schedule_.tasks[t];
  if (task.devices.empty() || !std::is_sorted(task.devices.begin(), task.devices.end()) ||
      std::adjacent_find(task.devices.begin(), task.devices.end()) != task.devices.end()) {
    return Error(t, "its devices are not a set");
  }
  if (IsCommunication(task.kind) != (task.devices.size() > 1)) {
    return Error(t, absl::StrCat("runs on ", task.devices.size(), " devices"));
  }
  if (task.devices.front() < 0 || task.devices.back() >= schedule_.options.num_devices) {
    return Error(t, "runs on a device that there is not");
  }
  for (const std::vector<BufferId>* list : {&task.reads, &task.writes}) {
    for (BufferId id : *list) {
      if (id == kNoBuffer && task.kind == TaskKind::kComputeGradient) continue;
      if (id < 0 || id >= static_cast<BufferId>(schedule_.buffers.size())) {
        return Error(t, absl::StrCat("buffer ", id, " does not exist"));
      }
      if (!std::binary_search(task.devices.begin(), task.devices.end(),
                              schedule_.buffers[id].device)) {
        return Error(t, absl::StrCat("buffer ", id, " is on device ", schedule_.buffers[id].device,
                                     ", which takes no part"));
      }
    }
  }
  for (const auto& [from, to] : task.transfers) {
    if (from < 0 || to < 0 || from >= static_cast<int32_t>(task.reads.size()) ||
        to >= static_cast<int32_t>(task.writes.size())) {
      return Error(t, "transfers between buffers that it does not have");
    }
    const Box &a = schedule_.buffers[task.reads[from]].box,
              &b = schedule_.buffers[task.writes[to]].box;
    if (a.shape.size() != b.shape.size() || Intersection(a, b).empty()) {
      return Error(t, "transfers between buffers that share nothing");
    }
  }
  const bool fits =
      (task.kind != TaskKind::kAccumulate && task.kind != TaskKind::kUpdate) ||
      (task.writes.size() == 1 && !task.reads.empty() &&
       schedule_.buffers[task.reads.back()].box == schedule_.buffers[task.writes[0]].box);
  if (!fits) return Error(t, "its buffers have different boxes");
  return CheckCollective(t);
}

absl::Status Checker::CheckCollective(int32_t t) const {
  const Task& task = schedule_.tasks[t];
  if (!IsCommunication(task.kind) || task.kind == TaskKind::kSendReceive) return absl::OkStatus();
  const size_t n = task.devices.size();
  if (task.reads.size() != n || task.writes.size() != n) {
    return Error(t, absl::StrCat("has ", task.reads.size(), " operands and ", task.writes.size(),
                                 " results on ", n, " devices"));
  }
  for (size_t m = 0; m < n; ++m) {
    if (schedule_.buffers[task.reads[m]].device != task.devices[m] ||
        schedule_.buffers[task.writes[m]].device != task.devices[m]) {
      return Error(t, "its buffers are not in the order of its devices");
    }
    if (schedule_.buffers[task.reads[m]].box.shape.size() !=
        schedule_.buffers[task.writes[0]].box.shape.size()) {
      return Error(t, "its buffers have different ranks");
    }
  }
  if (RecogniseCollective(schedule_.buffers, task.reads, task.writes, n * n) != task.kind) {
    return Error(t, "its boxes are not those of this collective");
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckPrograms() const {
  if (static_cast<int64_t>(schedule_.programs.size()) != schedule_.options.num_devices) {
    return absl::FailedPreconditionError(absl::StrCat("schedule: ", schedule_.programs.size(),
                                                      " programs for ",
                                                      schedule_.options.num_devices, " devices"));
  }
  std::vector<std::vector<int32_t>> devices(schedule_.tasks.size());
  for (size_t d = 0; d < schedule_.programs.size(); ++d) {
    for (int32_t t : schedule_.programs[d]) {
      if (t < 0 || t >= static_cast<int32_t>(schedule_.tasks.size())) {
        return absl::FailedPreconditionError(
            absl::StrCat("schedule: device ", d, " runs task ", t, ", which does not exist"));
      }
      devices[t].push_back(static_cast<int32_t>(d));
    }
  }
  for (size_t t = 0; t < devices.size(); ++t) {
    if (devices[t] != schedule_.tasks[t].devices) {
      return Error(static_cast<int32_t>(t), "is not in the programs of just its devices, once");
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::RunPrograms() {
  written_.assign(schedule_.buffers.size(), false);
  read_ = updated_ = written_;
  position_.assign(schedule_.tasks.size(), -1);
  std::vector<size_t> at(schedule_.programs.size(), 0);
  auto head = [&](size_t device) {
    const std::vector<int32_t>& program = schedule_.programs[device];
    return at[device] < program.size() ? program[at[device]] : -1;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t d = 0; d < at.size(); ++d) {
      while (head(d) >= 0) {
        const int32_t t = head(d);
        const std::vector<int32_t>& group = schedule_.tasks[t].devices;
        if (!std::all_of(group.begin(), group.end(), [&](int32_t g) { return head(g) == t; })) {
          break;
        }
        ISOMER_RETURN_IF_ERROR(Execute(t));
        for (int32_t g : group) ++at[g];
        progress = true;
      }
    }
  }
  for (size_t d = 0; d < at.size(); ++d) {
    if (head(d) >= 0) {
      return Error(head(d), absl::StrCat("deadlock: device ", d, " waits for devices that wait"));
    }
  }
  for (size_t id = 0; id < schedule_.buffers.size(); ++id) {
    if (schedule_.buffers[id].role == BufferRole::kGradient && written_[id] && !read_[id]) {
      return absl::FailedPreconditionError(absl::StrCat(
          "schedule: gradient buffer ", id, " of ", graph_.Label(schedule_.buffers[id].tensor.node),
          " is lost: nobody reads it"));
    }
  }
  return absl::OkStatus();
}

bool ChangesInPlace(const Task& task) {
  return task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kUpdate ||
         (task.kind == TaskKind::kAllReduce && task.reads == task.writes);
}

absl::Status Checker::Execute(int32_t t) {
  const Task& task = schedule_.tasks[t];
  for (BufferId id : task.reads) {
    if (id != kNoBuffer && !written_[id]) {
      return Error(t, absl::StrCat("reads buffer ", id, " before it is written"));
    }
  }
  const bool in_place = ChangesInPlace(task);
  for (BufferId id : task.reads) {
    if (id == kNoBuffer) continue;
    if (updated_[id] && task.kind != TaskKind::kUnload && task.kind != TaskKind::kUpdate) {
      return Error(t, absl::StrCat("reads parameter buffer ", id, " after its update"));
    }
    const bool changes_it = in_place && absl::c_linear_search(task.writes, id);
    if (!changes_it) read_[id] = true;
  }
  for (BufferId id : task.writes) {
    if (id == kNoBuffer) continue;
    if (in_place && !written_[id]) {
      return Error(t, absl::StrCat("changes buffer ", id, " before it is written"));
    }
    if (in_place && read_[id] && task.kind != TaskKind::kUpdate) {
      return Error(t, absl::StrCat("changes buffer ", id, " after it was read"));
    }
    if (!in_place && written_[id]) {
      return Error(t, absl::StrCat("writes buffer ", id, " a second time"));
    }
    written_[id] = true;
    if (task.kind == TaskKind::kUpdate) updated_[id] = true;
  }
  position_[t] = static_cast<int32_t>(executed_.size());
  executed_.push_back(t);
  return absl::OkStatus();
}

absl::Status Checker::CheckUpdates() const {
  std::map<BufferId, int32_t> updates;               // parameter shard -> task
  std::map<BufferId, std::vector<int32_t>> changes;  // gradient -> tasks that change it
  for (int32_t t : executed_) {
    const Task& task = schedule_.tasks[t];
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      if (schedule_.buffers[id].role == BufferRole::kGradient) changes[id].push_back(t);
      if (schedule_.buffers[id].role != BufferRole::kParameter || task.kind == TaskKind::kLoad) {
        continue;
      }
      if (task.kind != TaskKind::kUpdate || !updates.emplace(id, t).second) {
        return Error(t, absl::StrCat("changes parameter buffer ", id,
                                     task.kind == TaskKind::kUpdate ? " a second time" : ""));
      }
    }
  }
  for (const Schedule::HostTensor& parameter : schedule_.parameters) {
    const std::vector<BufferId>& shards = schedule_.shards.at(parameter.tensor);
    const int64_t copies = graph_.type(parameter.tensor).copies;
    for (size_t s = 0; s < shards.size(); ++s) {
      const BufferId gradient = parameter.gradients[s];
      if (gradient == kNoBuffer || !schedule_.options.training) continue;
      const auto update = updates.find(shards[s]);
      if (update == updates.end()) {
        return absl::FailedPreconditionError(absl::StrCat("schedule: shard ", s, " of parameter ",
                                                          graph_.Label(parameter.tensor.node),
                                                          " is never updated"));
      }
      const int32_t t = update->second;
      if (schedule_.tasks[t].reads != std::vector<BufferId>{shards[s], gradient}) {
        return Error(t, "does not update with the gradient of its parameter");
      }
      const std::vector<int32_t>& changed = changes[gradient];
      if (changed.empty() || position_[changed.back()] > position_[t]) {
        return Error(t, "updates before the gradient is complete");
      }
      if (copies == 1) continue;
      const Task& last = schedule_.tasks[changed.back()];
      const auto first = parameter.gradients.begin() + static_cast<int64_t>(s) / copies * copies;
      std::set<BufferId> group(first, first + copies);
      if (last.kind != TaskKind::kAllReduce ||
          std::set<BufferId>(last.reads.begin(), last.reads.end()) != group) {
        return Error(t, "updates a copy with a gradient that is not summed over all copies");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckMemory() const {
  const MemoryPlan plan = PlanMemory(schedule_);
  const std::vector<LiveRange> ranges = LiveRanges(schedule_);
  std::vector<std::map<int64_t, BufferId>> live(schedule_.programs.size());  // by offset
  std::vector<std::vector<BufferId>> births(schedule_.tasks.size()), deaths(births);
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (ranges[id].last < ranges[id].first) continue;
    births[ranges[id].first].push_back(static_cast<BufferId>(id));
    deaths[ranges[id].last].push_back(static_cast<BufferId>(id));
  }
  for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
    for (BufferId id : births[t]) {
      const Buffer& buffer = schedule_.buffers[id];
      auto [at, inserted] = live[buffer.device].emplace(plan.offsets[id], id);
      const auto next = std::next(at);
      const bool overlaps_next =
          next != live[buffer.device].end() && at->first + buffer.bytes() > next->first;
      const bool overlaps_previous =
          at != live[buffer.device].begin() &&
          std::prev(at)->first + schedule_.buffers[std::prev(at)->second].bytes() > at->first;
      if (!inserted || overlaps_next || overlaps_previous) {
        return Error(static_cast<int32_t>(t), absl::StrCat("buffer ", id, " reuses live memory"));
      }
    }
    for (BufferId id : deaths[t]) {
      live[schedule_.buffers[id].device].erase(plan.offsets[id]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSchedule(const Graph& graph, const Schedule& schedule) {
  return Checker(graph, schedule).Run();
}

}  // namespace isomer
