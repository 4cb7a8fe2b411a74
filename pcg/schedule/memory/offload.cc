#include "pcg/schedule/memory/offload.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace isomer {
namespace {

// What reads and writes a buffer, by place in Schedule::tasks.
struct ValueUse {
  BufferId id = kNoBuffer;
  int32_t last_forward = -1, first_backward = -1;
  bool stays = false;  // somebody else reads it, or the backward pass makes it
};

class Offloading {
 public:
  explicit Offloading(Schedule* schedule) : schedule_(*schedule) {}

  bool Run() {
    FindUses();
    before_.resize(schedule_.tasks.size());
    after_.resize(schedule_.tasks.size());
    for (auto& [device, values] : values_) OffloadOf(&values);
    if (fetched_.empty()) return false;
    ReadFetched();
    InsertCopies();
    return true;
  }

 private:
  void FindUses() {
    std::vector<bool> is_named(schedule_.shardings.size(), false);
    for (NodeId id : schedule_.options.offloaded) is_named[id.value] = true;
    std::vector<ValueUse> uses(schedule_.buffers.size());
    for (size_t id = 0; id < uses.size(); ++id) {
      const Buffer& buffer = schedule_.buffers[id];
      const bool is_value = buffer.role == BufferRole::kActivation ||
                            buffer.role == BufferRole::kReceived ||
                            buffer.role == BufferRole::kSaved;
      if (is_value && is_named[buffer.tensor.node.value]) {
        uses[id].id = static_cast<BufferId>(id);
      }
    }
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const auto place = static_cast<int32_t>(t);
      for (const BufferList* list : {&task.reads, &task.writes}) {
        for (BufferId id : *list) {
          if (id == kNoBuffer || uses[id].id == kNoBuffer || !IsThere(task, id)) continue;
          ValueUse& use = uses[id];
          if (task.phase == Phase::kForward) {
            use.last_forward = place;
          } else if (task.phase == Phase::kBackward && list == &task.reads) {
            if (use.first_backward < 0) use.first_backward = place;
          } else {
            use.stays = true;
          }
        }
      }
    }
    for (const ValueUse& use : uses) {
      if (use.stays || use.last_forward < 0 || use.first_backward < 0) continue;
      values_[schedule_.buffers[use.id].device].push_back(use);
    }
  }

  // Of devices that stand for others, transfers have the buffers of those, too.
  bool IsThere(const Task& task, BufferId id) const {
    return std::binary_search(task.devices.begin(), task.devices.end(),
                              schedule_.buffers[id].device);
  }

  void OffloadOf(std::vector<ValueUse>* values) {
    std::stable_sort(values->begin(), values->end(), [](const ValueUse& a, const ValueUse& b) {
      return a.last_forward < b.last_forward;
    });
    // From when on each may be fetched.
    std::vector<const ValueUse*> fetches;
    for (const ValueUse& value : *values) fetches.push_back(&value);
    std::stable_sort(fetches.begin(), fetches.end(), [](const ValueUse* a, const ValueUse* b) {
      return a->first_backward < b->first_backward;
    });
    absl::flat_hash_map<BufferId, int32_t> fetch_before;
    for (size_t i = 0; i < fetches.size(); ++i) {
      fetch_before[fetches[i]->id] = fetches[i - std::min(i, kCopiesAhead)]->first_backward;
    }
    for (size_t i = 0; i + kCopiesAhead < values->size(); ++i) {
      const BufferId id = (*values)[i].id;
      const int32_t offload_after = (*values)[i + kCopiesAhead].last_forward;
      if (offload_after >= fetch_before[id]) continue;
      Buffer on_host = schedule_.buffers[id], fetched = on_host;
      on_host.role = BufferRole::kOffloaded;
      const BufferId host_id = AddBuffer(std::move(on_host)), again = AddBuffer(std::move(fetched));
      fetched_[id] = again;
      after_[offload_after].push_back(Copy(TaskKind::kOffload, Phase::kForward, id, host_id));
      offloads_[id] = host_id;
    }
    for (const ValueUse* value : fetches) {
      const auto at = offloads_.find(value->id);
      if (at == offloads_.end()) continue;
      before_[fetch_before[value->id]].push_back(
          Copy(TaskKind::kFetch, Phase::kBackward, at->second, fetched_[value->id]));
    }
  }

  BufferId AddBuffer(Buffer buffer) {
    schedule_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(schedule_.buffers.size()) - 1;
  }

  Task Copy(TaskKind kind, Phase phase, BufferId from, BufferId to) const {
    const Buffer& buffer = schedule_.buffers[from];
    Task task{.kind = kind, .phase = phase, .node = buffer.tensor.node};
    task.moment = buffer.moment;
    task.devices = {buffer.device};
    task.reads = {from};
    task.writes = {to};
    task.bytes = buffer.bytes();
    return task;
  }

  void ReadFetched() {
    for (Task& task : schedule_.tasks) {
      if (task.phase != Phase::kBackward) continue;
      for (BufferId& id : task.reads) {
        if (const auto at = fetched_.find(id); at != fetched_.end()) id = at->second;
      }
    }
  }

  void InsertCopies() {
    std::vector<Task> tasks;
    tasks.reserve(schedule_.tasks.size() + 2 * fetched_.size());
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      std::move(before_[t].begin(), before_[t].end(), std::back_inserter(tasks));
      tasks.push_back(std::move(schedule_.tasks[t]));
      std::move(after_[t].begin(), after_[t].end(), std::back_inserter(tasks));
    }
    schedule_.tasks = std::move(tasks);
  }

  Schedule& schedule_;
  std::map<int32_t, std::vector<ValueUse>> values_;   // by device
  absl::flat_hash_map<BufferId, BufferId> offloads_;  // to what the host has
  absl::flat_hash_map<BufferId, BufferId> fetched_;   // to what the backward pass reads
  std::vector<std::vector<Task>> before_, after_;     // copies beside each task
};

}  // namespace

absl::StatusOr<bool> OffloadValues(Schedule* schedule) {
  if (schedule->options.offloaded.empty() || !schedule->options.training) return false;
  if (schedule->num_steps() > 1) {
    return absl::InvalidArgumentError(
        "offloaded: values of several steps between flushes stay on the device");
  }
  return Offloading(schedule).Run();
}

}  // namespace isomer
