#include "pcg/schedule/order/pipeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/carry.h"
#include "pcg/schedule/order/pipeline_chunks.h"
#include "pcg/schedule/order/slot_order.h"
#include "pcg/schedule/order/weight_gradients.h"
#include "pcg/schedule/order/zero_bubble_order.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {

namespace {

// How many rounds there are of the micro-batches of a step: as few as their size allows.
int64_t NumRounds(const PipelineShape& shape) {
  const int64_t n = shape.num_moments, largest = shape.LargestRound();
  return std::max<int64_t>(1, std::min((n + largest - 1) / largest, n / shape.num_stages));
}

// Forwards before the first backward, of all that a stage has.
int64_t ForwardsAhead(PipelineOrder order, int64_t stage, const PipelineShape& shape) {
  const int64_t count = shape.num_steps * shape.num_moments * shape.num_chunks;
  const int64_t behind = shape.num_stages - stage;  // and itself
  if (order == PipelineOrder::kAllForwardFirst) return count;
  if (shape.num_chunks == 1) return std::min(behind, count);
  return std::min(2 * (behind - 1) + (shape.num_chunks - 1) * shape.LargestRound(), count);
}

// Nothing waits in a circle: if stage s does its k-th forward at time k + s, and its k-th backward,
// behind the forward before it, at k + 2 (S - 1) - s + (v - 1) N, then whatever these need is
// earlier, as each chunk of a round has S slots or more. Of one round of fewer each takes S.
std::vector<PipelineSlot> InterleavedSlots(PipelineOrder order, int32_t stage,
                                           const PipelineShape& shape) {
  std::vector<PipelineSlot> forward, backward;
  const int64_t rounds = NumRounds(shape), n = shape.num_moments;
  const auto chunks = static_cast<int32_t>(shape.num_chunks);
  int32_t first = 0;  // of a round
  for (int64_t r = 0; r < shape.num_steps * rounds; ++r) {
    const auto end = first + static_cast<int32_t>(n / rounds + (r % rounds < n % rounds));
    for (int32_t chunk = 0; chunk < chunks; ++chunk) {
      for (int32_t moment = first; moment < end; ++moment) {
        forward.push_back({Phase::kForward, moment, chunk});
        backward.push_back({Phase::kBackward, moment, chunks - 1 - chunk});
      }
    }
    first = end;
  }
  const auto ahead = static_cast<size_t>(ForwardsAhead(order, stage, shape));
  std::vector<PipelineSlot> slots;
  slots.reserve(2 * forward.size());
  for (size_t k = 0; k < forward.size() + ahead; ++k) {
    if (k < forward.size()) slots.push_back(forward[k]);
    if (k >= ahead) slots.push_back(backward[k - ahead]);
  }
  return slots;
}

}  // namespace

int64_t PipelineShape::LargestRound() const {
  const int64_t rounds = std::max<int64_t>(1, num_moments / num_stages);
  return std::max(largest_round, (num_moments + rounds - 1) / rounds);
}

int64_t PipelineShape::MostInFlight(int64_t stage) const {
  if (zero_bubble.splits()) {
    return std::min<int64_t>(zero_bubble.most_in_flight, num_steps * num_moments * num_chunks);
  }
  const int64_t ahead = ForwardsAhead(PipelineOrder::kOneForwardOneBackward, stage, *this);
  // Chunks go forward before they go back.
  return num_chunks == 1 ? ahead : std::min(ahead + 1, num_steps * num_moments * num_chunks);
}

double PipelineShape::IdleShare() const {
  const int64_t n = num_steps * num_moments;
  if (zero_bubble.splits()) {
    const auto makespan = static_cast<double>(MakeZeroBubbleSchedule(*this).makespan);
    const int64_t each = int64_t{zero_bubble.forward} + zero_bubble.backward + zero_bubble.weights;
    return 1 - static_cast<double>(num_chunks * n * each) / makespan;
  }
  const int64_t whole = num_chunks * std::max(n, num_stages) + std::min(n, num_stages) - 1;
  return static_cast<double>(whole - num_chunks * n) / static_cast<double>(whole);
}

std::vector<PipelineSlot> SlotsOfStage(PipelineOrder order, int32_t stage,
                                       const PipelineShape& shape) {
  if (shape.num_chunks > 1) return InterleavedSlots(order, stage, shape);
  const auto moments = static_cast<int32_t>(shape.num_steps * shape.num_moments);
  const auto ahead = static_cast<int32_t>(ForwardsAhead(order, stage, shape));
  std::vector<PipelineSlot> slots;
  for (int32_t m = 0; m < moments + ahead; ++m) {
    if (m >= ahead) slots.push_back({Phase::kBackward, m - ahead});
    if (m < moments) slots.push_back({Phase::kForward, m});
  }
  return slots;
}

absl::StatusOr<std::vector<std::vector<PipelineSlot>>> SlotsOfStages(PipelineOrder order,
                                                                     const PipelineShape& shape) {
  if (shape.zero_bubble.splits()) {
    if (shape.zero_bubble.most_in_flight < shape.num_chunks) {
      return absl::InvalidArgumentError(
          absl::StrCat("zero_bubble: ", shape.zero_bubble.most_in_flight,
                       " micro-batches in flight, and a stage has ", shape.num_chunks, " chunks"));
    }
    return MakeZeroBubbleSchedule(shape).slots;
  }
  std::vector<std::vector<PipelineSlot>> slots;
  for (int32_t stage = 0; stage < shape.num_stages; ++stage) {
    slots.push_back(SlotsOfStage(order, stage, shape));
  }
  return slots;
}

PipelineShape ShapeOf(const Schedule& schedule, const PipelineStages& stages) {
  PipelineShape shape = {.num_stages = stages.num_stages,
                         .num_moments = schedule.num_moments / schedule.num_steps(),
                         .num_chunks = stages.num_chunks,
                         .num_steps = schedule.num_steps(),
                         .zero_bubble = schedule.options.zero_bubble,
                         .folds = stages.folds};
  if (schedule.options.moments_of_step == 0) return shape;
  PipelineShape of_all = shape;
  of_all.num_moments = schedule.options.moments_of_step;
  shape.largest_round = of_all.LargestRound();
  return shape;
}

bool CrossesGroups(const Task& task, const std::vector<int32_t>& group) {
  return std::any_of(task.devices.begin(), task.devices.end(),
                     [&](int32_t device) { return group[device] != group[task.devices[0]]; });
}

namespace {

bool IsOfMicroBatch(const Schedule& schedule, const Task& task, Phase phase) {
  return task.phase == phase && task.moment != kNoMoment && task.kind != TaskKind::kFeed &&
         !IsCarry(schedule, task);
}

// Of devices that stand for others, transfers have the buffers of those, too (symmetric_devices.h).
bool IsThere(const Schedule& schedule, const Task& task, BufferId id) {
  return std::binary_search(task.devices.begin(), task.devices.end(), schedule.buffers[id].device);
}

// The groups of devices that tasks of one micro-batch go from and to.
std::set<std::pair<int32_t, int32_t>> EdgesOf(const Schedule& schedule,
                                              const PipelineStages& stages) {
  std::set<std::pair<int32_t, int32_t>> edges;
  auto group = [&](BufferId id) { return stages.group[schedule.buffers[id].device]; };
  for (const Task& task : schedule.tasks) {
    if (!IsOfMicroBatch(schedule, task, Phase::kForward) || !CrossesGroups(task, stages.group))
      continue;
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

std::vector<int32_t> GroupsOf(const Schedule& schedule) {
  const size_t devices = static_cast<size_t>(schedule.options.num_devices);
  std::vector<int32_t> group(devices);
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
  return group;
}

PipelineStages StagesOf(const Schedule& schedule) {
  const size_t devices = static_cast<size_t>(schedule.options.num_devices);
  PipelineStages stages;
  stages.group = GroupsOf(schedule);
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
  for (size_t d = 0; d < devices; ++d) stages.stage[d] = stages.stage[stages.group[d]];
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
      : schedule_(*schedule),
        stages_(StagesOf(*schedule)),
        of_weights_(WeightGradients(schedule_, stages_.group)) {}

  absl::Status Run() {
    ISOMER_RETURN_IF_ERROR(FindGroups());
    if (!FindStarts()) {
      if (splits()) {
        return absl::InvalidArgumentError(
            "zero_bubble: gradients of weights wait for later ones of other stages");
      }
      return absl::InvalidArgumentError(
          absl::StrCat(schedule_.num_steps(),
                       " steps between flushes: a stage needs weights of another that do not come "
                       "in time"));
    }
    Permute(OrderBySlots(schedule_, stages_, slot_, start_));
    return absl::OkStatus();
  }

 private:
  // Group, phase, micro-batch, chunk, whether it is the second half of a backward pass.
  using Slot = std::tuple<int32_t, Phase, int32_t, int32_t, bool>;

  bool splits() const { return schedule_.options.zero_bubble.splits(); }

  // Whose work a task is: a transfer is the receiver's, of several the first in the order of the
  // pass.
  Slot SlotOf(size_t t) const {
    const Task& task = schedule_.tasks[t];
    const int32_t chunk = stages_.ChunkOf(t);
    if (!IsCommunication(task.kind))
      return {stages_.group[task.devices[0]], task.phase, task.moment, chunk, of_weights_[t]};
    const bool forward = task.phase == Phase::kForward;
    std::pair<int32_t, int32_t> first = {-1, stages_.group[task.devices[0]]};  // stage, group
    for (BufferId id : task.writes) {
      if (!IsThere(schedule_, task, id)) continue;
      const int32_t device = schedule_.buffers[id].device;
      const std::pair receiver(stages_.stage[device], stages_.group[device]);
      if (first.first < 0 || (forward ? receiver < first : receiver > first)) first = receiver;
    }
    return {first.second, task.phase, task.moment, chunk, of_weights_[t]};
  }

  absl::Status FindGroups() {
    slot_.assign(schedule_.tasks.size(), -1);
    absl::flat_hash_map<Slot, int32_t> index;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!IsOfMicroBatch(schedule_, task, Phase::kForward) &&
          !IsOfMicroBatch(schedule_, task, Phase::kBackward)) {
        continue;
      }
      slot_[t] = index.try_emplace(SlotOf(t), static_cast<int32_t>(index.size())).first->second;
    }
    FindNeeds(index.size());
    for (const auto& [slot, number] : index) lanes_[std::get<0>(slot)];
    const PipelineShape shape = ShapeOf(schedule_, stages_);
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::vector<PipelineSlot>> slots,
                            SlotsOfStages(schedule_.options.order, shape));
    for (auto& [group, lane] : lanes_) {
      for (const PipelineSlot& slot : slots[stages_.stage[group]]) {
        const auto found =
            index.find({group, slot.phase, slot.moment, slot.chunk, slot.of_weights});
        if (found != index.end()) lane.push_back({found->second, TimeOf(slot)});
      }
    }
    return absl::OkStatus();
  }

  int64_t TimeOf(const PipelineSlot& slot) const {
    const bool forward = slot.phase == Phase::kForward;
    if (!splits()) return forward ? 1 : 2;
    const ZeroBubble& times = schedule_.options.zero_bubble;
    return forward ? times.forward : slot.of_weights ? times.weights : times.backward;
  }

  // Of several steps also what weights that were updated come from.
  void FindNeeds(size_t num_slots) {
    needs_.resize(num_slots);
    const bool updates = schedule_.num_steps() > 1;
    std::vector<std::vector<int32_t>> behind(updates ? schedule_.tasks.size() : 0);
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      if (slot_[t] < 0 && !updates) continue;
      std::vector<int32_t>& needs = slot_[t] < 0 ? behind[t] : needs_[slot_[t]];
      const auto add = [&](int32_t need) {
        if (need != slot_[t] && (needs.empty() || needs.back() != need)) needs.push_back(need);
      };
      for (int32_t dep : schedule_.tasks[t].deps) {
        if (slot_[dep] >= 0) add(slot_[dep]);
        if (slot_[dep] >= 0 || !updates) continue;
        for (int32_t need : behind[dep]) add(need);
      }
      if (slot_[t] >= 0) continue;
      std::sort(needs.begin(), needs.end());
      needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    }
  }

  // When each slot would start if a forward took 1 and a backward 2, and transfers nothing. Stages
  // need only earlier ones forward and later ones backward, and micro-batches each its own: by
  // induction over micro-batches there is no circle, and the result is true, but where weights that
  // were updated (several steps) come from other stages, or the gradient of one weight is a sum
  // over chunks, whose second halves come in another order.
  bool FindStarts() {
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
          const auto [slot, time] = lane[next];
          int64_t start = free;
          bool known = true;
          for (int32_t need : needs_[slot]) {
            known &= end[need] != kUnknown;
            start = std::max(start, end[need]);
          }
          if (!known) break;
          start_[slot] = start;
          free = end[slot] = start + time;
          moved = true;
        }
      }
    }
    const bool all = std::find(start_.begin(), start_.end(), kUnknown) == start_.end();
    ISOMER_CHECK(all || schedule_.num_steps() > 1 || splits());
    return all;
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
  std::vector<bool> of_weights_;             // per task, if backward passes are split
  std::vector<int32_t> slot_;                // per task; -1: of no micro-batch
  std::vector<std::vector<int32_t>> needs_;  // per slot: slots that come before
  std::map<int32_t, std::vector<std::pair<int32_t, int64_t>>> lanes_;  // per group: slots, times
  std::vector<int64_t> start_;                                         // per slot
};

}  // namespace

absl::Status OrderMicroBatches(Schedule* schedule) {
  if (schedule->num_moments == 1 || MixesMicroBatches(*schedule)) return absl::OkStatus();
  return MicroBatchOrder(schedule).Run();
}

}  // namespace isomer
