#include "pcg/schedule/order/slot_run.h"

#include <algorithm>
#include <cstddef>

namespace isomer {
namespace {

class Runner {
 public:
  Runner(const PipelineShape& shape, const std::vector<std::vector<PipelineSlot>>& slots,
         const SlotTimes& times)
      : shape_(shape),
        slots_(slots),
        times_(times),
        last_(shape.num_stages * shape.num_chunks - 1),
        forward_end_(static_cast<size_t>(last_ + 1)),
        backward_end_(forward_end_),
        stages_(slots.size()) {
    const auto moments = static_cast<size_t>(shape.num_steps * shape.num_moments);
    for (auto* ends : {&forward_end_, &backward_end_}) {
      for (std::vector<int64_t>& of_level : *ends) of_level.assign(moments, kNotYet);
    }
    for (const std::vector<PipelineSlot>& of_stage : slots) {
      for (const PipelineSlot& slot : of_stage) splits_ |= slot.of_weights;
    }
  }

  std::optional<SlotRun> Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < slots_.size(); ++s) {
        while (stages_[s].at < slots_[s].size() && Take(s)) moved = true;
      }
    }
    SlotRun run;
    for (size_t s = 0; s < slots_.size(); ++s) {
      const Stage& stage = stages_[s];
      if (stage.at < slots_[s].size()) return std::nullopt;
      run.makespan = std::max(run.makespan, stage.free);
      run.longest_stage = std::max(run.longest_stage, stage.free - stage.first);
      run.busy = std::max(run.busy, stage.busy);
      run.most_in_flight.push_back(stage.most_in_flight);
    }
    return run;
  }

 private:
  static constexpr int64_t kNotYet = -1;

  struct Stage {
    size_t at = 0;  // the next slot
    int64_t free = 0, first = 0, busy = 0, in_flight = 0, most_in_flight = 0;
  };

  int64_t LevelOf(size_t stage, int32_t chunk) const {
    int64_t level = shape_.num_stages * chunk;
    while (shape_.StageOfLevel(level) != static_cast<int64_t>(stage)) ++level;
    return level;
  }

  // When the result of another level is here, or kNotYet.
  int64_t Arrival(int64_t end, int64_t from, int64_t to) const {
    const bool moves = shape_.StageOfLevel(from) != shape_.StageOfLevel(to);
    return end == kNotYet || !moves ? end : end + times_.message;
  }

  int64_t ReadyAt(const PipelineSlot& slot, int64_t level) const {
    const auto m = static_cast<size_t>(slot.moment);
    if (slot.of_weights) return backward_end_[level][m];
    if (slot.phase == Phase::kForward) {
      return level == 0 ? 0 : Arrival(forward_end_[level - 1][m], level - 1, level);
    }
    if (level == last_ || forward_end_[level][m] == kNotYet) return forward_end_[level][m];
    return Arrival(backward_end_[level + 1][m], level + 1, level);
  }

  // False: what the slot needs is not there yet.
  bool Take(size_t s) {
    Stage& stage = stages_[s];
    const PipelineSlot& slot = slots_[s][stage.at];
    const int64_t level = LevelOf(s, slot.chunk), ready = ReadyAt(slot, level);
    if (ready == kNotYet) return false;
    const bool forward = slot.phase == Phase::kForward;
    const int64_t time = forward           ? times_.forward
                         : slot.of_weights ? times_.weights
                                           : times_.backward;
    const int64_t start = std::max(ready, stage.free);
    if (stage.at++ == 0) stage.first = start;
    stage.free = start + time;
    stage.busy += time;
    if (!slot.of_weights) {
      (forward ? forward_end_ : backward_end_)[level][static_cast<size_t>(slot.moment)] =
          stage.free;
    }
    if (forward) {
      stage.most_in_flight = std::max(stage.most_in_flight, ++stage.in_flight);
    } else if (slot.of_weights || !splits_) {
      --stage.in_flight;
    }
    return true;
  }

  const PipelineShape& shape_;
  const std::vector<std::vector<PipelineSlot>>& slots_;
  const SlotTimes& times_;
  const int64_t last_;  // level
  bool splits_ = false;
  std::vector<std::vector<int64_t>> forward_end_, backward_end_;  // by level and micro-batch
  std::vector<Stage> stages_;
};

}  // namespace

std::optional<SlotRun> RunSlots(const PipelineShape& shape,
                                const std::vector<std::vector<PipelineSlot>>& slots,
                                const SlotTimes& times) {
  return Runner(shape, slots, times).Run();
}

}  // namespace isomer
