#include "pcg/schedule/order/zero_bubble_order.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "pcg/schedule/order/slot_run.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

// Quarters of a W.
constexpr int64_t kWhole = 4;

// How an order is made.
struct Recipe {
  int64_t patience = kWhole;  // quarters of a W for which a stage waits rather than begin one
  bool equal_times = false;   // as if F, B and W took the same
};

enum class SlotKind { kForward, kBackward, kWeights };

class ListScheduler {
 public:
  ListScheduler(const PipelineShape& shape, const Recipe& recipe)
      : shape_(shape),
        times_(recipe.equal_times ? ZeroBubble() : shape.zero_bubble),
        patience_(recipe.patience),
        moments_(shape.num_steps * shape.num_moments),
        levels_(static_cast<size_t>(shape.num_stages * shape.num_chunks)),
        stages_(static_cast<size_t>(shape.num_stages)) {
    ISOMER_CHECK(shape.zero_bubble.most_in_flight >= shape.num_chunks);
    for (size_t s = 0; s < stages_.size(); ++s) stages_[s].share = ShareOf(static_cast<int64_t>(s));
    for (size_t l = 0; l < levels_.size(); ++l) {
      levels_[l].stage = static_cast<size_t>(shape.StageOfLevel(static_cast<int64_t>(l)));
      stages_[levels_[l].stage].levels.push_back(l);
    }
  }

  // By stage.
  std::vector<std::vector<PipelineSlot>> Run() {
    for (size_t s = 0; s < stages_.size(); ++s) stages_[s].next = NextOf(stages_[s]);
    while (Stage* stage = FirstToStart()) Take(stage);
    std::vector<std::vector<PipelineSlot>> slots;
    for (Stage& stage : stages_) {
      ISOMER_CHECK(stage.slots.size() == 3 * stage.levels.size() * static_cast<size_t>(moments_));
      slots.push_back(std::move(stage.slots));
    }
    return slots;
  }

 private:
  struct Candidate {
    int64_t start = 0;
    bool again = false;  // what the stage did last: forward or backward
    SlotKind kind = SlotKind::kForward;
    size_t level = 0;
    // Of two the one that comes first; of chunks the later, which frees memory sooner.
    bool operator<(const Candidate& other) const {
      return std::tuple(start, again, other.level) < std::tuple(other.start, other.again, level);
    }
  };

  // A chunk of the model, in the order of the forward pass.
  struct Level {
    size_t stage = 0;
    std::vector<int64_t> forward_end, backward_end;  // of each micro-batch that was there
    size_t finished = 0;                             // with the gradients of weights
  };

  struct Stage {
    std::vector<size_t> levels;
    int64_t share = 0;
    int64_t free = 0;
    int64_t in_flight = 0, before_backward = 0;
    SlotKind last = SlotKind::kWeights;  // forward or backward
    std::optional<Candidate> next;
    std::vector<PipelineSlot> slots;
  };

  // Of several chunks no stage has less than all: results come back to those that are ahead.
  int64_t ShareOf(int64_t stage) const {
    const int64_t all = shape_.zero_bubble.most_in_flight, others = shape_.num_stages - 1;
    if (shape_.num_chunks > 1 || others == 0) return all;
    return (all * others - stage * (all - 1) + others - 1) / others;
  }

  int64_t TimeOf(SlotKind kind) const {
    return kind == SlotKind::kForward    ? times_.forward
           : kind == SlotKind::kBackward ? times_.backward
                                         : times_.weights;
  }

  // When what a micro-batch needs to go on at a level is there; none: that is not known yet.
  std::optional<int64_t> ForwardReady(size_t l) const {
    const size_t m = levels_[l].forward_end.size();
    if (m == static_cast<size_t>(moments_)) return std::nullopt;
    if (l == 0) return 0;
    const std::vector<int64_t>& before = levels_[l - 1].forward_end;
    return m < before.size() ? std::optional(before[m]) : std::nullopt;
  }
  std::optional<int64_t> BackwardReady(size_t l) const {
    const size_t m = levels_[l].backward_end.size();
    if (m == levels_[l].forward_end.size()) return std::nullopt;
    if (l + 1 == levels_.size()) return levels_[l].forward_end[m];
    const std::vector<int64_t>& behind = levels_[l + 1].backward_end;
    return m < behind.size() ? std::optional(behind[m]) : std::nullopt;
  }

  // Room for the micro-batch, and in the chunks behind this one.
  bool HasRoom(const Stage& stage, size_t l) const {
    const auto later =
        stage.levels.end() - std::upper_bound(stage.levels.begin(), stage.levels.end(), l);
    return stage.in_flight + 1 + later <= shape_.zero_bubble.most_in_flight &&
           stage.before_backward < stage.share;
  }

  std::optional<Candidate> NextOf(const Stage& stage) const {
    std::optional<Candidate> best;
    const auto offer = [&](std::optional<int64_t> ready, SlotKind kind, size_t level) {
      if (!ready.has_value()) return;
      const Candidate candidate{std::max(*ready, stage.free), kind == stage.last, kind, level};
      if (!best.has_value() || candidate < *best) best = candidate;
    };
    std::optional<size_t> weights;
    for (size_t l : stage.levels) {
      offer(BackwardReady(l), SlotKind::kBackward, l);
      if (HasRoom(stage, l)) offer(ForwardReady(l), SlotKind::kForward, l);
      if (levels_[l].finished < levels_[l].backward_end.size()) weights = l;
    }
    const int64_t late = stage.free + patience_ * TimeOf(SlotKind::kWeights) / kWhole;
    const bool waits = best.has_value() && (best->start == stage.free || best->start < late);
    if (weights.has_value() && !waits) {
      return Candidate{stage.free, false, SlotKind::kWeights, *weights};
    }
    return best;
  }

  Stage* FirstToStart() {
    Stage* first = nullptr;
    for (Stage& stage : stages_) {
      if (!stage.next.has_value()) continue;
      if (first == nullptr || stage.next->start < first->next->start) first = &stage;
    }
    return first;
  }

  void Take(Stage* stage) {
    const Candidate taken = *stage->next;
    Level& level = levels_[taken.level];
    const int64_t end = taken.start + TimeOf(taken.kind);
    PipelineSlot slot{taken.kind == SlotKind::kForward ? Phase::kForward : Phase::kBackward, 0,
                      shape_.ChunkOfLevel(static_cast<int64_t>(taken.level)),
                      taken.kind == SlotKind::kWeights};
    switch (taken.kind) {
      case SlotKind::kForward:
        slot.moment = static_cast<int32_t>(level.forward_end.size());
        level.forward_end.push_back(end);
        ++stage->in_flight;
        ++stage->before_backward;
        break;
      case SlotKind::kBackward:
        slot.moment = static_cast<int32_t>(level.backward_end.size());
        level.backward_end.push_back(end);
        --stage->before_backward;
        break;
      case SlotKind::kWeights:
        slot.moment = static_cast<int32_t>(level.finished++);
        --stage->in_flight;
        break;
    }
    stage->slots.push_back(slot);
    stage->free = end;
    if (taken.kind != SlotKind::kWeights) stage->last = taken.kind;
    stage->next = NextOf(*stage);
    if (taken.kind == SlotKind::kForward && taken.level + 1 < levels_.size()) {
      Stage& behind = stages_[levels_[taken.level + 1].stage];
      behind.next = NextOf(behind);
    }
    if (taken.kind == SlotKind::kBackward && taken.level > 0) {
      Stage& before = stages_[levels_[taken.level - 1].stage];
      before.next = NextOf(before);
    }
  }

  const PipelineShape& shape_;
  const ZeroBubble times_;
  const int64_t patience_;
  const int64_t moments_;
  std::vector<Level> levels_;
  std::vector<Stage> stages_;
};

ZeroBubbleSchedule Scheduled(const PipelineShape& shape, const Recipe& recipe) {
  const ZeroBubble& times = shape.zero_bubble;
  ZeroBubbleSchedule result{ListScheduler(shape, recipe).Run()};
  const std::optional<SlotRun> run =
      RunSlots(shape, result.slots, {times.forward, times.backward, times.weights});
  ISOMER_CHECK(run.has_value());
  result.makespan = run->makespan;
  result.longest_stage = run->longest_stage;
  return result;
}

// Does not depend on the number of micro-batches: fewer stand for many in a simulation.
Recipe BestRecipe(const PipelineShape& shape) {
  constexpr int64_t kMomentsPerStage = 8;
  PipelineShape some = shape;
  some.num_steps = 1;
  some.num_moments = kMomentsPerStage * shape.num_stages;
  Recipe best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Recipe recipe :
       {Recipe{kWhole}, Recipe{kWhole, true}, Recipe{0}, Recipe{kWhole / 4}, Recipe{kWhole / 2}}) {
    const int64_t makespan = Scheduled(some, recipe).makespan;
    if (makespan >= least) continue;
    least = makespan;
    best = recipe;
  }
  return best;
}

}  // namespace

ZeroBubbleSchedule MakeZeroBubbleSchedule(const PipelineShape& shape) {
  return Scheduled(shape, BestRecipe(shape));
}

}  // namespace isomer
