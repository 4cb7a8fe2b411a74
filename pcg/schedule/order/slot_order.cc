#include "pcg/schedule/order/slot_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace isomer {
namespace {

class SlotOrder {
 public:
  SlotOrder(const Schedule& schedule, const PipelineStages& stages,
            const std::vector<int32_t>& slot_of, const std::vector<int64_t>& start)
      : schedule_(schedule),
        stages_(stages),
        slot_of_(slot_of),
        start_(start),
        count_(static_cast<int32_t>(schedule.tasks.size())),
        held_back_(schedule.num_steps() == 1 ? FindLate() : FindSpread()) {}

  std::vector<int32_t> Run() {
    order_.reserve(count_);
    for (int32_t t = 0; t < count_; ++t) {
      if (schedule_.tasks[t].phase == Phase::kLoad) order_.push_back(t);
    }
    FindWaits();
    FillSlots();
    EmitReady();
    for (const auto& [start, computes, slot] : Parts()) {
      for (int32_t t : tasks_of_slot_[2 * slot + (computes ? 1 : 0)]) {
        EmitWithDeps(t);
        EmitReady();
      }
      if (computes && schedule_.num_steps() > 1) EmitSome(slot);
    }
    // What waits for those is none of the others.
    for (const auto& [group, held] : held_) {
      for (int32_t t : held) ready_.push(t);
    }
    while (!ready_.empty()) {
      const int32_t t = ready_.top();
      ready_.pop();
      EmitWithDeps(t);
    }
    for (int32_t t = 0; t < count_; ++t) {
      const Phase phase = schedule_.tasks[t].phase;
      if (phase != Phase::kLoad && !IsOrdered(t)) order_.push_back(t);
    }
    return std::move(order_);
  }

 private:
  // What comes in order of slots, or as soon as it can. Of one step, updates come last.
  bool IsOrdered(int32_t t) const {
    const Phase phase = schedule_.tasks[t].phase;
    return phase == Phase::kForward || phase == Phase::kBackward ||
           (phase == Phase::kUpdate && schedule_.num_steps() > 1);
  }

  // Of one step: gradients that wait for the end of the order.
  std::vector<bool> FindLate() const {
    std::vector<bool> needed(count_, false);  // by tasks of slots
    for (int32_t t = count_; t-- > 0;) {
      if (slot_of_[t] < 0 && !needed[t]) continue;
      for (int32_t dep : schedule_.tasks[t].deps) needed[dep] = true;
    }
    std::vector<bool> late(count_, false), of_last(count_, false);
    for (int32_t t = 0; t < count_; ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.phase != Phase::kBackward) continue;
      if (slot_of_[t] >= 0) {
        of_last[t] = task.moment == schedule_.num_moments - 1;
        continue;
      }
      of_last[t] = std::any_of(task.deps.begin(), task.deps.end(),
                               [&](int32_t dep) { return of_last[dep]; });
      late[t] = of_last[t] && !needed[t] && stages_.stage[task.devices[0]] > 0;
    }
    return late;
  }

  // Of several: what goes on behind the last micro-batch of each.
  std::vector<bool> FindSpread() const {
    const int32_t moments = schedule_.num_moments / schedule_.num_steps();
    std::vector<bool> spread(count_, false), of_last(count_, false);
    for (int32_t t = 0; t < count_; ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.phase != Phase::kBackward && task.phase != Phase::kUpdate) continue;
      if (slot_of_[t] >= 0) {
        of_last[t] = task.moment % moments == moments - 1;
        continue;
      }
      of_last[t] = spread[t] = std::any_of(task.deps.begin(), task.deps.end(),
                                           [&](int32_t dep) { return of_last[dep]; });
    }
    return spread;
  }

  void FindWaits() {
    waits_.assign(count_, 0);
    users_.resize(count_);
    done_.assign(count_, false);
    for (int32_t t = 0; t < count_; ++t) {
      done_[t] = schedule_.tasks[t].phase == Phase::kLoad;
      if (slot_of_[t] >= 0 || !IsOrdered(t)) continue;
      for (int32_t dep : schedule_.tasks[t].deps) {
        if (schedule_.tasks[dep].phase == Phase::kLoad) continue;
        users_[dep].push_back(t);
        ++waits_[t];
      }
      if (waits_[t] == 0) ready_.push(t);
      if (held_back_[t]) ++held_tasks_[GroupOf(t)];
    }
  }

  int32_t GroupOf(int32_t t) const { return stages_.group[schedule_.tasks[t].devices[0]]; }

  // Per slot, what arrives, which needs nothing of its own slot, then the others, in their order.
  void FillSlots() {
    tasks_of_slot_.resize(2 * start_.size());
    group_of_slot_.assign(start_.size(), 0);
    for (int32_t t = 0; t < count_; ++t) {
      const int32_t slot = slot_of_[t];
      if (slot < 0) continue;
      const Task& task = schedule_.tasks[t];
      const bool arrives = CrossesGroups(task, stages_.group) &&
                           std::none_of(task.deps.begin(), task.deps.end(),
                                        [&](int32_t dep) { return slot_of_[dep] == slot; });
      tasks_of_slot_[2 * slot + (arrives ? 0 : 1)].push_back(t);
      if (!arrives) group_of_slot_[slot] = GroupOf(t);
    }
    for (int32_t group : group_of_slot_) ++slots_of_group_[group];
  }

  // What arrives comes before anything is computed at that time, so that nobody who sends waits for
  // the receiver's work.
  std::vector<std::tuple<int64_t, bool, int32_t>> Parts() const {
    std::vector<std::tuple<int64_t, bool, int32_t>> parts;
    for (size_t slot = 0; slot < start_.size(); ++slot) {
      for (bool computes : {false, true}) {
        parts.emplace_back(start_[slot], computes, static_cast<int32_t>(slot));
      }
    }
    std::sort(parts.begin(), parts.end());
    return parts;
  }

  void Emit(int32_t t) {
    done_[t] = true;
    order_.push_back(t);
    for (int32_t user : users_[t]) {
      if (--waits_[user] == 0) ready_.push(user);
    }
  }

  // Of what is held back, what the task needs, comes first.
  void EmitWithDeps(int32_t t) {
    if (done_[t]) return;
    for (int32_t dep : schedule_.tasks[t].deps) {
      if (!done_[dep]) EmitWithDeps(dep);
    }
    Emit(t);
  }

  void EmitReady() {
    while (!ready_.empty()) {
      const int32_t t = ready_.top();
      ready_.pop();
      if (done_[t]) continue;
      if (held_back_[t]) {
        held_[GroupOf(t)].push_back(t);
      } else {
        Emit(t);
      }
    }
  }

  // So many that those of a step are done in half of the slots of the next.
  void EmitSome(int32_t slot) {
    const int32_t group = group_of_slot_[slot];
    std::deque<int32_t>& held = held_[group];
    const int64_t slots = std::max<int64_t>(slots_of_group_[group] / 2, 1);
    for (int64_t left = (held_tasks_[group] + slots - 1) / slots; left > 0 && !held.empty();) {
      const int32_t t = held.front();
      held.pop_front();
      if (done_[t]) continue;
      Emit(t);
      --left;
      EmitReady();
    }
  }

  const Schedule& schedule_;
  const PipelineStages& stages_;
  const std::vector<int32_t>& slot_of_;
  const std::vector<int64_t>& start_;
  const int32_t count_;
  const std::vector<bool> held_back_;
  std::vector<std::vector<int32_t>> tasks_of_slot_;  // 2 slot: what arrives; 2 slot + 1: the others
  std::vector<int32_t> group_of_slot_;
  std::map<int32_t, int64_t> slots_of_group_, held_tasks_;  // by group
  std::vector<int32_t> waits_;                              // per task of no slot: deps to come
  std::vector<std::vector<int32_t>> users_;                 // of those, by what they wait for
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready_;
  std::vector<bool> done_;
  std::map<int32_t, std::deque<int32_t>> held_;  // that are ready, by group
  std::vector<int32_t> order_;
};

}  // namespace

std::vector<int32_t> OrderBySlots(const Schedule& schedule, const PipelineStages& stages,
                                  const std::vector<int32_t>& slot_of,
                                  const std::vector<int64_t>& start) {
  return SlotOrder(schedule, stages, slot_of, start).Run();
}

}  // namespace isomer
