#include "pcg/schedule/pipeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "pcg/schedule/pipeline_chunks.h"
#include "pcg/support/check.h"

namespace isomer {

namespace {

// The k-th forward, and the k-th backward, are of the same micro-batch.
std::vector<PipelineSlot> InterleavedSlots(PipelineOrder order, int32_t stage, int32_t num_stages,
                                           int32_t num_moments, int32_t num_chunks) {
  const int32_t count = num_moments * num_chunks, round = num_stages * num_chunks;
  const auto slot = [&](Phase phase, int32_t k) {
    const int32_t chunk = k % round / num_stages;
    return PipelineSlot{phase, k / round * num_stages + k % num_stages,
                        phase == Phase::kForward ? chunk : num_chunks - 1 - chunk};
  };
  const int32_t ahead =
      order == PipelineOrder::kAllForwardFirst
          ? count
          : std::min(2 * (num_stages - stage - 1) + (num_chunks - 1) * num_stages, count);
  std::vector<PipelineSlot> slots;
  for (int32_t k = 0; k < count + ahead; ++k) {
    if (k < count) slots.push_back(slot(Phase::kForward, k));
    if (k >= ahead) slots.push_back(slot(Phase::kBackward, k - ahead));
  }
  return slots;
}

}  // namespace

std::vector<PipelineSlot> SlotsOfStage(PipelineOrder order, int32_t stage, int32_t num_stages,
                                       int32_t num_moments, int32_t num_chunks) {
  if (num_chunks > 1) {
    return InterleavedSlots(order, stage, num_stages, num_moments, num_chunks);
  }
  const int32_t ahead = order == PipelineOrder::kAllForwardFirst
                            ? num_moments
                            : std::min(num_stages - stage, num_moments);
  std::vector<PipelineSlot> slots;
  for (int32_t m = 0; m < num_moments + ahead; ++m) {
    if (m >= ahead) slots.push_back({Phase::kBackward, m - ahead});
    if (m < num_moments) slots.push_back({Phase::kForward, m});
  }
  return slots;
}

bool CrossesGroups(const Task& task, const PipelineStages& stages) {
  return std::any_of(task.devices.begin(), task.devices.end(), [&](int32_t device) {
    return stages.group[device] != stages.group[task.devices[0]];
  });
}

namespace {

bool IsOfMicroBatch(const Task& task, Phase phase) {
  return task.phase == phase && task.moment != kNoMoment && task.kind != TaskKind::kFeed;
}

// Of devices that stand for others, transfers have the buffers of those, too (twin_devices.h).
bool IsThere(const Schedule& schedule, const Task& task, BufferId id) {
  return std::binary_search(task.devices.begin(), task.devices.end(), schedule.buffers[id].device);
}

// The groups of devices that tasks of one micro-batch go from and to.
std::set<std::pair<int32_t, int32_t>> EdgesOf(const Schedule& schedule,
                                              const PipelineStages& stages) {
  std::set<std::pair<int32_t, int32_t>> edges;
  auto group = [&](BufferId id) { return stages.group[schedule.buffers[id].device]; };
  for (const Task& task : schedule.tasks) {
    if (!IsOfMicroBatch(task, Phase::kForward) || !CrossesGroups(task, stages)) continue;
    for (BufferId from : task.reads) {
      if (!IsThere(schedule, task, from)) continue;
      for (BufferId to : task.writes) {
        if (!IsThere(schedule, task, to)) continue;
        if (group(from) != group(to)) edges.emplace(group(from), group(to));
      }
    }
  }
  return edges;
}

}  // namespace

PipelineStages StagesOf(const Schedule& schedule) {
  PipelineStages stages;
  const size_t devices = static_cast<size_t>(schedule.options.num_devices);
  std::vector<int32_t>& group = stages.group;
  group.resize(devices);
  std::iota(group.begin(), group.end(), 0);
  auto find = [&group](int32_t device) {
    while (group[device] != device) device = group[device] = group[group[device]];
    return device;
  };
  std::map<NodeId, int32_t> device_of;  // some device of a node's calls
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kCompute || task.moment == kNoMoment) continue;
    const int32_t a = find(device_of.emplace(task.node, task.devices[0]).first->second);
    const int32_t b = find(task.devices[0]);
    group[std::max(a, b)] = std::min(a, b);
  }
  for (size_t d = 0; d < devices; ++d) group[d] = find(static_cast<int32_t>(d));

  // The longest way to each group. One that is longer than there are groups goes round in a circle.
  stages.stage.assign(devices, 0);
  const std::set<std::pair<int32_t, int32_t>> edges = EdgesOf(schedule, stages);
  size_t rounds = 0;
  for (bool changed = true; changed; ++rounds) {
    changed = false;
    if (rounds > devices) {
      if (FindChunks(schedule, &stages)) return stages;
      // One stage of all devices.
      stages.stage.assign(devices, 0);
      stages.group.assign(devices, 0);
      break;
    }
    for (const auto& [from, to] : edges) {
      if (stages.stage[to] > stages.stage[from]) continue;
      stages.stage[to] = stages.stage[from] + 1;
      changed = true;
    }
  }
  for (size_t d = 0; d < devices; ++d) stages.stage[d] = stages.stage[group[d]];
  stages.num_stages = 1 + *std::max_element(stages.stage.begin(), stages.stage.end());
  return stages;
}

bool MixesMicroBatches(const Schedule& schedule) {
  constexpr int32_t kSeveral = -2;
  auto join = [](int32_t a, int32_t b) {
    return a == kNoMoment ? b : b == kNoMoment || a == b ? a : kSeveral;
  };
  // The micro-batches that a buffer was made from.
  std::vector<int32_t> made_from(schedule.buffers.size(), kNoMoment);
  for (const Task& task : schedule.tasks) {
    if (task.phase != Phase::kForward && task.phase != Phase::kBackward) continue;
    int32_t needs = kNoMoment;
    for (BufferId id : task.reads) {
      if (id != kNoBuffer) needs = join(needs, made_from[id]);
    }
    const bool one = task.moment != kNoMoment;
    if (one && needs != kNoMoment && needs != task.moment) return true;
    // What is of no micro-batch and needs one, needs all.
    const int32_t makes = one ? task.moment : needs == kNoMoment ? kNoMoment : kSeveral;
    for (BufferId id : task.writes) {
      if (id != kNoBuffer) made_from[id] = join(made_from[id], makes);
    }
  }
  return false;
}

namespace {

class MicroBatchOrder {
 public:
  explicit MicroBatchOrder(Schedule* schedule)
      : schedule_(*schedule), stages_(StagesOf(*schedule)) {}

  void Run() {
    FindGroups();
    FindStarts();
    Permute(Emit());
  }

 private:
  using Slot = std::tuple<int32_t, Phase, int32_t, int32_t>;  // group, phase, micro-batch, chunk

  // Whose work a task is: a transfer is the receiver's, of several the first in the order of the
  // pass.
  Slot SlotOf(size_t t) const {
    const Task& task = schedule_.tasks[t];
    const int32_t chunk = stages_.ChunkOf(t);
    if (!IsCommunication(task.kind))
      return {stages_.group[task.devices[0]], task.phase, task.moment, chunk};
    const bool forward = task.phase == Phase::kForward;
    std::pair<int32_t, int32_t> first = {-1, stages_.group[task.devices[0]]};  // stage, group
    for (BufferId id : task.writes) {
      if (!IsThere(schedule_, task, id)) continue;
      const int32_t device = schedule_.buffers[id].device;
      const std::pair receiver(stages_.stage[device], stages_.group[device]);
      if (first.first < 0 || (forward ? receiver < first : receiver > first)) first = receiver;
    }
    return {first.second, task.phase, task.moment, chunk};
  }

  void FindGroups() {
    slot_.assign(schedule_.tasks.size(), -1);
    absl::flat_hash_map<Slot, int32_t> index;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!IsOfMicroBatch(task, Phase::kForward) && !IsOfMicroBatch(task, Phase::kBackward))
        continue;
      slot_[t] = index.try_emplace(SlotOf(t), static_cast<int32_t>(index.size())).first->second;
    }
    needs_.resize(index.size());
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      if (slot_[t] < 0) continue;
      for (int32_t dep : schedule_.tasks[t].deps) {
        std::vector<int32_t>& needs = needs_[slot_[t]];
        const int32_t need = slot_[dep];
        if (need >= 0 && need != slot_[t] && (needs.empty() || needs.back() != need)) {
          needs.push_back(need);
        }
      }
    }
    for (const auto& [slot, number] : index) lanes_[std::get<0>(slot)];
    for (auto& [group, lane] : lanes_) {
      for (const PipelineSlot& slot :
           SlotsOfStage(schedule_.options.order, stages_.stage[group], stages_.num_stages,
                        schedule_.num_moments, stages_.num_chunks)) {
        const auto found = index.find({group, slot.phase, slot.moment, slot.chunk});
        if (found != index.end()) lane.push_back({found->second, slot.phase});
      }
    }
  }

  // When each slot would start if a forward took 1 and a backward 2, and transfers nothing.
  void FindStarts() {
    constexpr int64_t kUnknown = -1;
    start_.assign(needs_.size(), kUnknown);
    std::vector<int64_t> end = start_;
    std::map<int32_t, std::pair<size_t, int64_t>> at;  // per lane: next slot, when it is free
    bool moved = true;
    while (moved) {
      moved = false;
      for (const auto& [group, lane] : lanes_) {
        auto& [next, free] = at[group];
        for (; next < lane.size(); ++next) {
          const auto [slot, phase] = lane[next];
          int64_t start = free;
          bool known = true;
          for (int32_t need : needs_[slot]) {
            known &= end[need] != kUnknown;
            start = std::max(start, end[need]);
          }
          if (!known) break;
          start_[slot] = start;
          free = end[slot] = start + (phase == Phase::kForward ? 1 : 2);
          moved = true;
        }
      }
    }
    // Stages need only earlier ones forward and later ones backward, and micro-batches each its
    // own: by induction over micro-batches there is no circle.
    for (int64_t start : start_) ISOMER_CHECK(start != kUnknown);
  }

  // Per task: whether it waits for the end of the order: the gradients of weights that the last
  // micro-batch completes are synchronised when a stage has sent all that the one before it waits
  // for. Devices have one queue of communication, and what a stage is late all stages before it
  // are. The first delays nobody.
  std::vector<bool> FindLate() const {
    const auto count = schedule_.tasks.size();
    std::vector<bool> needed(count, false);  // by tasks of slots
    for (size_t t = count; t-- > 0;) {
      if (slot_[t] < 0 && !needed[t]) continue;
      for (int32_t dep : schedule_.tasks[t].deps) needed[dep] = true;
    }
    std::vector<bool> late(count, false), of_last(count, false);
    for (size_t t = 0; t < count; ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.phase != Phase::kBackward) continue;
      if (slot_[t] >= 0) {
        of_last[t] = task.moment == schedule_.num_moments - 1;
        continue;
      }
      of_last[t] = std::any_of(task.deps.begin(), task.deps.end(),
                               [&](int32_t dep) { return of_last[dep]; });
      late[t] = of_last[t] && !needed[t] && stages_.stage[task.devices[0]] > 0;
    }
    return late;
  }

  // Tasks in order of their slots. What arrives comes before anything is computed at that time, so
  // that nobody who sends waits for the receiver's work; it needs nothing of its own slot.
  std::vector<int32_t> Emit() const {
    // Per slot, what arrives, then the others, in their order.
    std::vector<std::vector<int32_t>> slotted(2 * needs_.size());
    std::vector<int32_t> order, last;
    const int32_t count = static_cast<int32_t>(schedule_.tasks.size());
    std::vector<int32_t> waits(count, 0);
    std::vector<std::vector<int32_t>> users(count);  // of tasks of no slot
    for (int32_t t = 0; t < count; ++t) {
      const Task& task = schedule_.tasks[t];
      if (slot_[t] >= 0) {
        const bool arrives = CrossesGroups(task, stages_) &&
                             std::none_of(task.deps.begin(), task.deps.end(),
                                          [&](int32_t dep) { return slot_[dep] == slot_[t]; });
        slotted[2 * slot_[t] + (arrives ? 0 : 1)].push_back(t);
        continue;
      }
      if (task.phase != Phase::kForward && task.phase != Phase::kBackward) {
        if (task.phase != Phase::kLoad) last.push_back(t);
        if (task.phase == Phase::kLoad) order.push_back(t);
        continue;
      }
      for (int32_t dep : task.deps) {
        if (schedule_.tasks[dep].phase == Phase::kLoad) continue;
        users[dep].push_back(t);
        ++waits[t];
      }
    }
    std::vector<std::tuple<int64_t, bool, int32_t>> parts;  // of slots, in order
    for (size_t slot = 0; slot < needs_.size(); ++slot) {
      for (bool computes : {false, true}) {
        parts.emplace_back(start_[slot], computes, static_cast<int32_t>(slot));
      }
    }
    std::sort(parts.begin(), parts.end());
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (int32_t t = 0; t < count; ++t) {
      const Phase phase = schedule_.tasks[t].phase;
      const bool free = slot_[t] < 0 && (phase == Phase::kForward || phase == Phase::kBackward);
      if (free && waits[t] == 0) ready.push(t);
    }
    auto emit = [&](int32_t t) {
      order.push_back(t);
      for (int32_t user : users[t]) {
        if (--waits[user] == 0) ready.push(user);
      }
    };
    std::vector<int32_t> held;
    const std::vector<bool> late = FindLate();
    auto emit_ready = [&] {
      while (!ready.empty()) {
        const int32_t t = ready.top();
        ready.pop();
        late[t] ? held.push_back(t) : emit(t);
      }
    };
    emit_ready();
    for (const auto& [start, computes, slot] : parts) {
      for (int32_t t : slotted[2 * slot + (computes ? 1 : 0)]) {
        emit(t);
        emit_ready();
      }
    }
    // What waits for those is none of the others.
    for (int32_t t : held) ready.push(t);
    while (!ready.empty()) {
      const int32_t t = ready.top();
      ready.pop();
      emit(t);
    }
    order.insert(order.end(), last.begin(), last.end());
    return order;
  }

  void Permute(const std::vector<int32_t>& order) {
    ISOMER_CHECK(order.size() == schedule_.tasks.size());
    std::vector<int32_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
    std::vector<Task> tasks;
    tasks.reserve(order.size());
    for (int32_t t : order) {
      tasks.push_back(std::move(schedule_.tasks[t]));
      for (int32_t& dep : tasks.back().deps) dep = place[dep];
      std::sort(tasks.back().deps.begin(), tasks.back().deps.end());
    }
    schedule_.tasks = std::move(tasks);
  }

  Schedule& schedule_;
  const PipelineStages stages_;
  std::vector<int32_t> slot_;                // per task; -1: of no micro-batch
  std::vector<std::vector<int32_t>> needs_;  // per slot: slots that come before
  std::map<int32_t, std::vector<std::pair<int32_t, Phase>>> lanes_;  // per group: its slots
  std::vector<int64_t> start_;                                       // per slot
};

}  // namespace

void OrderMicroBatches(Schedule* schedule) {
  if (schedule->num_moments == 1 || MixesMicroBatches(*schedule)) return;
  MicroBatchOrder(schedule).Run();
}

}  // namespace isomer
