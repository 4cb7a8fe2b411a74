#include "pcg/schedule/check/check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/check/check_host.h"
#include "pcg/schedule/check/check_micro_batches.h"
#include "pcg/schedule/check/check_operands.h"
#include "pcg/schedule/check/check_steps.h"
#include "pcg/schedule/check/check_updates.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/additions.h"
#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/schedule/program/program.h"
#include "pcg/schedule/task_error.h"
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
    ISOMER_RETURN_IF_ERROR(CheckCopies());
    ISOMER_RETURN_IF_ERROR(CheckPrograms());
    ISOMER_RETURN_IF_ERROR(RunPrograms());
    ISOMER_RETURN_IF_ERROR(CheckUpdates(graph_, schedule_, position_));
    ISOMER_RETURN_IF_ERROR(CheckWaits());
    ISOMER_RETURN_IF_ERROR(CheckMicroBatches(graph_, schedule_));
    ISOMER_RETURN_IF_ERROR(CheckCarries(graph_, schedule_));
    return CheckCalls(graph_, schedule_);
  }

  // Of several steps without a flush in between: what is not of one step alone.
  absl::Status RunSteps() {
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      ISOMER_RETURN_IF_ERROR(CheckShape(static_cast<int32_t>(t)));
    }
    ISOMER_RETURN_IF_ERROR(CheckPrograms());
    ISOMER_RETURN_IF_ERROR(MeetTasks());
    ISOMER_RETURN_IF_ERROR(CheckWaits());
    return CheckMicroBatches(graph_, schedule_);
  }

 private:
  // Names the task as `device`, or the first that runs it, meets it.
  absl::Status Error(int32_t t, absl::string_view what, int32_t device = -1) const {
    return TaskError(graph_, schedule_, t, what, device);
  }

  absl::Status CheckShape(int32_t t) const;
  absl::Status CheckCopies() const;
  absl::Status CheckPrograms() const;
  absl::Status CheckWaits() const;
  absl::Status MeetTasks();
  absl::Status RunPrograms();
  absl::Status Execute(int32_t t);
  bool ChangesInPlace(const Task& task, BufferId id) const;

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
  for (const BufferList* list : {&task.reads, &task.writes}) {
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
  return CheckOperands(graph_, schedule_, t);
}

// Shards that are one buffer are copies, and each buffer has its shard's box.
absl::Status Checker::CheckCopies() const {
  for (const auto& [tensor, shards] : schedule_.shards) {
    if (!graph_.Contains(tensor)) continue;
    const TensorType& type = graph_.type(tensor);
    const auto error = [&, tensor = tensor](absl::string_view what) {
      return absl::FailedPreconditionError(
          absl::StrCat("schedule: shards of ", graph_.Label(tensor.node), ": ", what));
    };
    if (static_cast<int64_t>(shards.size()) != type.NumShards()) return error("not all are there");
    std::map<BufferId, int64_t> first;  // the shard that is copy 0 of what a buffer holds
    for (size_t s = 0; s < shards.size(); ++s) {
      const BufferId id = shards[s];
      if (id < 0 || id >= static_cast<BufferId>(schedule_.buffers.size())) {
        return error(absl::StrCat("buffer ", id, " does not exist"));
      }
      const ShardCoordinates at = CoordinatesOfShard(type, static_cast<int64_t>(s));
      if (schedule_.buffers[id].box != ShardBox(type, at.dims)) {
        return error(absl::StrCat("buffer ", id, " has another box than shard ", s));
      }
      const int64_t original = ShardAt(type, {at.dims, 0, at.partial});
      if (first.emplace(id, original).first->second != original) {
        return error(absl::StrCat("buffer ", id, " is two shards that are no copies"));
      }
    }
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

// Every device in its program, until all are at their ends or none can go on.
absl::Status Checker::MeetTasks() {
  position_.assign(schedule_.tasks.size(), -1);
  std::vector<size_t> at(schedule_.programs.size(), 0);
  auto head = [&](size_t device) {
    const std::vector<int32_t>& program = schedule_.programs[device];
    return at[device] < program.size() ? program[at[device]] : -1;
  };
  // A task runs when all of its devices have come to it.
  std::vector<int32_t> arrived(schedule_.tasks.size(), 0);
  std::vector<int32_t> ready;  // devices that have just come to their next task
  for (size_t d = at.size(); d-- > 0;) ready.push_back(static_cast<int32_t>(d));
  while (!ready.empty()) {
    const int32_t t = head(ready.back());
    ready.pop_back();
    if (t < 0) continue;
    const auto& group = schedule_.tasks[t].devices;
    if (++arrived[t] < static_cast<int32_t>(group.size())) continue;
    position_[t] = static_cast<int32_t>(executed_.size());
    executed_.push_back(t);
    for (int32_t g : group) {
      ++at[g];
      ready.push_back(g);
    }
  }
  for (size_t d = 0; d < at.size(); ++d) {
    if (head(d) >= 0) {
      return Error(head(d), absl::StrCat("deadlock: device ", d, " waits for devices that wait"),
                   static_cast<int32_t>(d));
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::RunPrograms() {
  ISOMER_RETURN_IF_ERROR(MeetTasks());
  written_.assign(schedule_.buffers.size(), false);
  read_ = updated_ = written_;
  for (int32_t t : executed_) ISOMER_RETURN_IF_ERROR(Execute(t));
  for (size_t id = 0; id < schedule_.buffers.size(); ++id) {
    const BufferRole role = schedule_.buffers[id].role;
    const bool is_gradient = role == BufferRole::kGradient || role == BufferRole::kGradientShard;
    if (is_gradient && written_[id] && !read_[id]) {
      return absl::FailedPreconditionError(absl::StrCat(
          "schedule: gradient buffer ", id, " of ", graph_.Label(schedule_.buffers[id].tensor.node),
          " is lost: nobody reads it"));
    }
  }
  return absl::OkStatus();
}

// Whether task `t` changes what buffer `id`, which it writes, held before.
bool Checker::ChangesInPlace(const Task& task, BufferId id) const {
  switch (task.kind) {
    case TaskKind::kAccumulate:
      return true;
    case TaskKind::kUpdate:
      return LivesThroughout(schedule_.buffers[id].role);
    case TaskKind::kAllReduce:
    case TaskKind::kReduce:
      return absl::c_linear_search(task.reads, id);
    case TaskKind::kAllGather:
    case TaskKind::kBroadcast:
      if (schedule_.buffers[id].role == BufferRole::kParameter) return true;
      break;
    default:
      break;
  }
  return IsCarry(schedule_, task);
}

absl::Status Checker::Execute(int32_t t) {
  const Task& task = schedule_.tasks[t];
  for (BufferId id : task.reads) {
    if (id != kNoBuffer && !written_[id]) {
      return Error(t, absl::StrCat("reads buffer ", id, " before it is written"));
    }
  }
  for (BufferId id : task.reads) {
    if (id == kNoBuffer) continue;
    const bool is_state = schedule_.buffers[id].role == BufferRole::kInput;
    if (updated_[id] && is_state) {
      return Error(t, absl::StrCat("reads state buffer ", id, " after it is the next step's"));
    }
    if (updated_[id] && task.kind != TaskKind::kUnload && task.kind != TaskKind::kUpdate &&
        task.kind != TaskKind::kBroadcast) {
      return Error(t, absl::StrCat("reads parameter buffer ", id, " after its update"));
    }
    const bool changes_it = absl::c_linear_search(task.writes, id) && ChangesInPlace(task, id);
    if (!changes_it) read_[id] = true;
  }
  for (BufferId id : task.writes) {
    if (id == kNoBuffer) continue;
    const bool in_place = ChangesInPlace(task, id);
    const BufferRole role = schedule_.buffers[id].role;
    const bool updates = role == BufferRole::kParameter || role == BufferRole::kInput;
    const bool kept = LivesThroughout(role) || role == BufferRole::kInput;
    if (in_place && !written_[id]) {
      return Error(t, absl::StrCat("changes buffer ", id, " before it is written"));
    }
    if (in_place && read_[id] && !kept) {
      return Error(t, absl::StrCat("changes buffer ", id, " after it was read"));
    }
    if (!in_place && written_[id]) {
      return Error(t, absl::StrCat("writes buffer ", id, " a second time"));
    }
    written_[id] = true;
    if (in_place && updates) updated_[id] = true;
  }
  return absl::OkStatus();
}

// Whatever a device runs side by side, a task waits (Task::deps) for who wrote what it reads, and
// for who read or wrote what it writes. Waits go to tasks that came before in executed_, as
// programs do: no order in which the streams may run them is a circle.
absl::Status Checker::CheckWaits() const {
  std::vector<int32_t> writer(schedule_.buffers.size(), -1);
  std::vector<std::vector<int32_t>> readers(schedule_.buffers.size());
  const std::vector<BufferId> sums = SumsInPlace(schedule_);
  for (int32_t t : executed_) {
    const Task& task = schedule_.tasks[t];
    for (int32_t dep : task.deps) {
      if (dep < 0 || dep >= static_cast<int32_t>(position_.size()) ||
          position_[dep] >= position_[t]) {
        return Error(t, absl::StrCat("waits for task ", dep, ", which does not come before"));
      }
    }
    const auto waits = [&](int32_t other) {
      return other < 0 || other == t || absl::c_binary_search(task.deps, other);
    };
    for (BufferId id : task.reads) {
      if (id == kNoBuffer) continue;
      if (!waits(writer[id])) {
        return Error(t, absl::StrCat("reads buffer ", id, " without waiting for task ", writer[id],
                                     ", which writes it"));
      }
      readers[id].push_back(t);
    }
    for (BufferId id : task.writes) {
      if (id == kNoBuffer) continue;
      readers[id].push_back(writer[id]);
      if (sums[id] != kNoBuffer && !task.is_view) readers[id].push_back(writer[sums[id]]);
      for (int32_t other : readers[id]) {
        if (!waits(other)) {
          return Error(t, absl::StrCat("writes buffer ", id, " without waiting for task ", other,
                                       ", which uses it"));
        }
      }
      writer[id] = t;
      readers[id].clear();
    }
  }
  return absl::OkStatus();
}

// Every device runs its tasks in the order in which they are, by which views (views.h) and memory
// plans (memory.h) say who has which bytes when.
absl::Status CheckOrder(const Graph& graph, const Schedule& schedule) {
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    const std::vector<int32_t>& program = schedule.programs[d];
    for (size_t i = 1; i < program.size(); ++i) {
      if (program[i - 1] < program[i]) continue;
      return TaskError(graph, schedule, program[i],
                       absl::StrCat("comes behind task ", program[i - 1], " on device ", d));
    }
  }
  return absl::OkStatus();
}

// The memory plans that are made of a schedule for one queue, on which tasks follow each other,
// and for several, and the program of these.
absl::Status CheckWhatRuns(const Schedule& schedule) {
  ISOMER_RETURN_IF_ERROR(CheckMemory(schedule, PlanMemory(schedule)));
  const MemoryPlan memory = PlanMemory(schedule, kMostQueues);
  ISOMER_RETURN_IF_ERROR(CheckMemory(schedule, memory));
  return CheckProgram(schedule, memory, CompileProgram(schedule, memory, kMostQueues));
}

}  // namespace

absl::Status CheckSchedule(const Graph& graph, const Schedule& schedule) {
  ISOMER_RETURN_IF_ERROR(Checker(graph, schedule).Run());
  ISOMER_RETURN_IF_ERROR(CheckOrder(graph, schedule));
  ISOMER_RETURN_IF_ERROR(CheckLayouts(graph, schedule));
  ISOMER_RETURN_IF_ERROR(CheckViews(graph, schedule));
  return CheckWhatRuns(schedule);
}

absl::Status CheckSteps(const Graph& graph, const Schedule& one, const Schedule& all) {
  ISOMER_RETURN_IF_ERROR(Checker(graph, all).RunSteps());
  ISOMER_RETURN_IF_ERROR(CheckOrder(graph, all));
  ISOMER_RETURN_IF_ERROR(CheckRepetition(graph, one, all));
  ISOMER_RETURN_IF_ERROR(CheckLayouts(graph, all));
  ISOMER_RETURN_IF_ERROR(CheckViews(graph, all));
  return CheckWhatRuns(all);
}

absl::Status CheckLowered(const Plan& plan, const LoweredPlan& lowered) {
  const Graph& graph = lowered.mapped.graph;
  if (lowered.schedule.num_steps() == 1) return CheckSchedule(graph, lowered.schedule);
  Plan of_one = plan;
  of_one.update.steps_between_flushes = 1;
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan one, LowerPlan(of_one));
  ISOMER_RETURN_IF_ERROR(CheckSchedule(graph, one.schedule));
  return CheckSteps(graph, one.schedule, lowered.schedule);
}

}  // namespace isomer
