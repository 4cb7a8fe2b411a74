#include "pcg/schedule/check/check_steps.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/order/weight_versions.h"
#include "pcg/schedule/task_error.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// All that a task says but whom it waits for, which the order of `all` decides.
using TaskKey = std::vector<int64_t>;
TaskKey KeyOf(const Task& task) {
  TaskKey key = {static_cast<int64_t>(task.kind),
                 static_cast<int64_t>(task.phase),
                 task.node.value,
                 task.shard,
                 task.moment,
                 task.step,
                 task.segments,
                 task.whole,
                 task.bytes,
                 std::bit_cast<int64_t>(task.value),
                 std::bit_cast<int64_t>(task.flops)};
  const auto append = [&key](const auto& list) {
    key.push_back(static_cast<int64_t>(list.size()));
    key.insert(key.end(), list.begin(), list.end());
  };
  append(task.devices);
  append(task.reads);
  append(task.writes);
  for (const auto& [from, to] : task.transfers) {
    key.push_back(from);
    key.push_back(to);
  }
  return key;
}

class RepetitionCheck {
 public:
  RepetitionCheck(const Graph& graph, const Schedule& one, const Schedule& all)
      : graph_(graph), one_(one), all_(all), steps_(all.num_steps()) {}

  absl::Status Run() {
    ISOMER_RETURN_IF_ERROR(CheckOptions());
    ISOMER_RETURN_IF_ERROR(CheckBuffers());
    ISOMER_RETURN_IF_ERROR(PlaceTasks());
    return CheckOrder();
  }

 private:
  static absl::Status Error(absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat("schedule of several steps: ", what));
  }

  absl::Status CheckOptions() const {
    UpdateOptions update = all_.options.update;
    if (update.steps_between_flushes != steps_ || steps_ % 2 != 0) {
      return Error(absl::StrCat("it is of ", steps_, " steps, not of the ",
                                update.steps_between_flushes, " that it says"));
    }
    update.steps_between_flushes = 1;
    const auto rest = [](const Schedule& schedule) {
      const ScheduleOptions& options = schedule.options;
      return std::tie(options.training, options.num_devices, options.loss, options.seed,
                      options.keep_gradients, schedule.shards, schedule.output_copies);
    };
    const auto same = [](const Schedule::HostTensor& a, const Schedule::HostTensor& b) {
      const auto all = [](const Schedule::HostTensor& t) {
        return std::tie(t.tensor, t.leaves, t.operators, t.stored, t.trained, t.gradients,
                        t.trainable);
      };
      return all(a) == all(b);
    };
    const bool fits = update == one_.options.update && rest(all_) == rest(one_) &&
                      all_.num_moments == steps_ * one_.num_moments &&
                      std::equal(all_.parameters.begin(), all_.parameters.end(),
                                 one_.parameters.begin(), one_.parameters.end(), same) &&
                      std::equal(all_.inputs.begin(), all_.inputs.end(), one_.inputs.begin(),
                                 one_.inputs.end(), same);
    return fits ? absl::OkStatus() : Error("it is of other tensors, or options, than one step");
  }

  // The buffer of `one` that it is; `moment`: of the step that has it first.
  bool IsLike(const Buffer& buffer, const Buffer& one, int32_t step) const {
    const int32_t moment =
        one.moment == kNoMoment ? kNoMoment : one.moment + step * one_.num_moments;
    return buffer.moment == moment &&
           std::tie(buffer.role, buffer.tensor, buffer.shard, buffer.device, buffer.dtype,
                    buffer.box, buffer.partials, buffer.partial_step) ==
               std::tie(one.role, one.tensor, one.shard, one.device, one.dtype, one.box,
                        one.partials, one.partial_step);
  }

  absl::Status CheckBuffers() const {
    std::vector<bool> updated(one_.buffers.size(), false);
    for (const Task& task : one_.tasks) {
      if (task.phase != Phase::kUpdate) continue;
      for (BufferId id : task.writes) updated[id] = true;
    }
    std::vector<bool> taken(all_.buffers.size(), false);
    for (int32_t step = 0; step < steps_; ++step) {
      if (all_.in_step[step].size() != one_.buffers.size()) return Error("buffers are missing");
      for (size_t id = 0; id < one_.buffers.size(); ++id) {
        const BufferRole role = one_.buffers[id].role;
        const bool weight = role == BufferRole::kParameter;
        const bool stays = LivesThroughout(role);
        const int32_t first = !stays ? step : weight && updated[id] ? step % 2 : 0;
        const BufferId found = all_.in_step[step][id];
        if (found < 0 || found >= static_cast<BufferId>(all_.buffers.size()) ||
            !IsLike(all_.buffers[found], one_.buffers[id], first) ||
            (first < step && found != all_.in_step[first][id]) || (first == step && taken[found])) {
          return Error(absl::StrCat("buffer ", found, " is not buffer ", id, " of step ", step));
        }
        taken[found] = true;
      }
    }
    return absl::OkStatus();
  }

  // Whether a step has the task of one step.
  bool HasTask(const Task& task, int32_t step) const {
    if (task.phase == Phase::kLoad) {
      const BufferId loaded = task.writes[0];
      return step == 0 || (step == 1 && all_.in_step[1][loaded] != all_.in_step[0][loaded]);
    }
    if (task.kind != TaskKind::kUnload) return true;
    return step + 1 == steps_ || !HoldsTrained(one_.buffers[task.reads[0]].role);
  }

  // Where each task is if steps come one after the other.
  absl::Status PlaceTasks() {
    absl::flat_hash_map<TaskKey, std::vector<int64_t>> places;
    int64_t place = 0;
    for (const auto in_part :
         {+[](Phase phase) { return phase == Phase::kLoad; },
          +[](Phase phase) { return phase != Phase::kLoad && phase != Phase::kUnload; },
          +[](Phase phase) { return phase == Phase::kUnload; }}) {
      for (int32_t step = 0; step < steps_; ++step) {
        for (const Task& task : one_.tasks) {
          if (!in_part(task.phase) || !HasTask(task, step)) continue;
          places[KeyOf(InStep(task, step))].push_back(place++);
        }
      }
    }
    for (size_t t = 0; t < all_.tasks.size(); ++t) {
      const auto found = places.find(KeyOf(all_.tasks[t]));
      if (found == places.end() || found->second.empty()) {
        return TaskError(graph_, all_, static_cast<int32_t>(t),
                         absl::StrCat("is no task of step ", all_.tasks[t].step));
      }
      place_.push_back(found->second.back());
      found->second.pop_back();
    }
    if (place == static_cast<int64_t>(all_.tasks.size())) return absl::OkStatus();
    return Error(absl::StrCat(all_.tasks.size(), " tasks, not ", place));
  }

  Task InStep(Task task, int32_t step) const {
    task.step = step;
    if (task.moment != kNoMoment) task.moment += step * one_.num_moments;
    // What is updated is the weights of the step before.
    const size_t updated = task.kind == TaskKind::kUpdate ? task.segments : 0;
    for (size_t i = 0; i < task.reads.size(); ++i) {
      const int32_t before = step % 2 == 0 ? step + 1 : step - 1;
      task.reads[i] = all_.InStep(task.reads[i], i < updated ? before : step);
    }
    for (BufferId& id : task.writes) id = all_.InStep(id, step);
    return task;
  }

  // Of two uses of a buffer of which one writes, the first is the first in `all`, too.
  absl::Status CheckOrder() const {
    std::vector<int64_t> written(all_.buffers.size(), -1), used(written);
    for (size_t t = 0; t < all_.tasks.size(); ++t) {
      const Task& task = all_.tasks[t];
      const auto error = [&](BufferId id) {
        return TaskError(graph_, all_, static_cast<int32_t>(t),
                         absl::StrCat("uses buffer ", id, " after a task of a later step"));
      };
      for (BufferId id : task.reads) {
        if (id != kNoBuffer && written[id] > place_[t]) return error(id);
      }
      for (BufferId id : task.writes) {
        if (id != kNoBuffer && used[id] > place_[t]) return error(id);
      }
      for (BufferId id : task.writes) {
        if (id != kNoBuffer) written[id] = std::max(written[id], place_[t]);
      }
      for (const BufferList* list : {&task.reads, &task.writes}) {
        for (BufferId id : *list) {
          if (id != kNoBuffer) used[id] = std::max(used[id], place_[t]);
        }
      }
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Schedule &one_, &all_;
  const int32_t steps_;
  std::vector<int64_t> place_;  // per task of `all`
};

}  // namespace

absl::Status CheckRepetition(const Graph& graph, const Schedule& one, const Schedule& all) {
  return RepetitionCheck(graph, one, all).Run();
}

}  // namespace isomer
