#include "pcg/schedule/order/pipeline_chunks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/schedule/carry.h"

namespace isomer {
namespace {

constexpr int32_t kUnknown = -1;

// The level of a task is the number of the virtual stage, of S times as many as there are chunks,
// in which it is.
class ChunkFinder {
 public:
  ChunkFinder(const Schedule& schedule, PipelineStages* stages)
      : schedule_(schedule), stages_(*stages), level_(schedule.tasks.size(), kUnknown) {}

  bool Run() {
    FindForwardLevels();
    if (!FindStages() && !FindFold()) return false;
    FindGradientLevels();
    FindLevelsOfWhatIsNeeded();
    if (!IsConsistent()) return false;
    stages_.num_stages = num_stages_;
    stages_.num_chunks = num_chunks_;
    stages_.folds = folds_;
    for (size_t d = 0; d < stages_.stage.size(); ++d) {
      const auto found = place_.find(stages_.group[d]);
      stages_.stage[d] = found == place_.end() ? 0 : found->second;
    }
    for (int32_t level : level_) {
      stages_.chunk.push_back(level == kUnknown ? 0 : level / num_stages_);
    }
    return true;
  }

 private:
  bool IsOf(const Task& task, Phase phase) const {
    return task.phase == phase && task.moment != kNoMoment && task.kind != TaskKind::kFeed &&
           !IsCarry(schedule_, task);
  }
  bool Crosses(const Task& task) const { return CrossesGroups(task, stages_.group); }
  bool IsGradient(BufferId id) const {
    return id != kNoBuffer && schedule_.buffers[id].role == BufferRole::kGradient;
  }
  // Whether shares of a gradient are added up in any order.
  bool Commutes() const { return schedule_.options.zero_bubble.splits(); }
  // Of values, for the backward pass again; or zeros.
  bool CanRunOnHost(const Task& task) const {
    return task.kind == TaskKind::kFill ||
           (task.kind != TaskKind::kComputeGradient && !IsGradient(task.writes[0]));
  }
  int32_t GroupOf(const Task& task) const {
    const BufferId id = task.writes.empty() ? kNoBuffer : task.writes[0];
    return stages_.group[id == kNoBuffer ? task.devices[0] : schedule_.buffers[id].device];
  }

  // As early as can be, then as late as can be: what a call needs beside what comes from the
  // stage before it is of the call's level.
  void FindForwardLevels() {
    std::vector<int32_t> made(schedule_.buffers.size(), 0);
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!IsOf(task, Phase::kForward)) continue;
      int32_t level = IsBehindTurn(task) ? num_stages_ : 0;
      for (BufferId id : task.reads) level = std::max(level, made[id] + Crosses(task));
      for (BufferId id : task.writes) made[id] = level;
      level_[t] = level;
    }
    constexpr int32_t kNobody = std::numeric_limits<int32_t>::max();
    std::vector<int32_t> needed(schedule_.buffers.size(), kNobody);
    for (size_t t = schedule_.tasks.size(); t-- > 0;) {
      const Task& task = schedule_.tasks[t];
      if (!IsOf(task, Phase::kForward)) continue;
      int32_t level = kNobody;
      for (BufferId id : task.writes) level = std::min(level, needed[id]);
      if (level != kNobody && !IsAtTurn(task)) level_[t] = level;
      for (BufferId id : task.reads) {
        needed[id] = std::min(needed[id], level_[t] - Crosses(task));
      }
    }
  }

  // Of the calls of each group.
  std::map<int32_t, std::set<int32_t>> LevelsOfGroups() const {
    std::map<int32_t, std::set<int32_t>> levels;
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (task.kind != TaskKind::kCompute || !IsOf(task, Phase::kForward)) continue;
      levels[GroupOf(task)].insert(level_[t]);
    }
    return levels;
  }

  bool FindStages() {
    const std::map<int32_t, std::set<int32_t>> levels = LevelsOfGroups();
    num_stages_ = static_cast<int32_t>(levels.size());
    if (num_stages_ == 0) return false;
    num_chunks_ = static_cast<int32_t>(levels.begin()->second.size());
    std::set<int32_t> places;
    for (const auto& [group, of_group] : levels) {
      const int32_t first = *of_group.begin();
      if (static_cast<int32_t>(of_group.size()) != num_chunks_ || first >= num_stages_ ||
          *of_group.rbegin() != first + (num_chunks_ - 1) * num_stages_) {
        return false;
      }
      for (int32_t level : of_group) {
        if (level % num_stages_ != first) return false;
      }
      place_[group] = first;
      places.insert(first);
    }
    return num_chunks_ > 1 && static_cast<int32_t>(places.size()) == num_stages_;
  }

  // What leads to the group where the way turns, and from it, has one level there.
  bool FindFold() {
    if (!schedule_.options.zero_bubble.splits() || num_stages_ < 2) return false;
    place_.clear();
    int32_t turn = kUnknown;
    std::set<int32_t> places;
    for (const auto& [group, of_group] : LevelsOfGroups()) {
      const int32_t first = *of_group.begin(), last = *of_group.rbegin();
      const size_t distinct = first == num_stages_ - 1 ? 1 : 2;
      if (of_group.size() != distinct || first + last != 2 * (num_stages_ - 1)) return false;
      if (distinct == 1) turn = group;
      place_[group] = first;
      places.insert(first);
    }
    if (turn == kUnknown || static_cast<int32_t>(places.size()) != num_stages_) return false;
    num_chunks_ = 2;
    folds_ = true;
    CutAtTurn(turn);
    FindForwardLevels();
    return true;
  }

  // As a device of the group does them for one micro-batch.
  void CutAtTurn(int32_t group) {
    turn_ = group;
    std::vector<std::pair<int32_t, double>> calls;
    double all = 0;
    for (const Task& task : schedule_.tasks) {
      if (task.kind != TaskKind::kCompute || !IsOf(task, Phase::kForward)) continue;
      if (task.devices[0] != group || task.moment != 0) continue;
      calls.emplace_back(task.node.value, task.flops);
      all += task.flops;
    }
    double sum = 0;
    for (const auto& [node, flops] : calls) {
      if (2 * sum >= all) behind_turn_.insert(node);
      sum += flops;
    }
  }
  bool IsAtTurn(const Task& task) const {
    return folds_ && task.kind == TaskKind::kCompute && stages_.group[task.devices[0]] == turn_;
  }
  bool IsBehindTurn(const Task& task) const {
    return IsAtTurn(task) && behind_turn_.contains(task.node.value);
  }

  // The first level of the group that has this one.
  int32_t PlaceOf(int32_t level) const {
    const int32_t place = level % num_stages_;
    return folds_ && level >= num_stages_ ? num_stages_ - 1 - place : place;
  }

  // Calls are reversed in their own level; what their gradients go through next, in the level of
  // the last of them, or on another group in its next lower one.
  void FindGradientLevels() {
    absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> of_call;
    std::vector<int32_t> made(schedule_.buffers.size(), kUnknown);
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      const std::pair call(task.node.value, task.shard);
      if (task.kind == TaskKind::kCompute && IsOf(task, Phase::kForward)) of_call[call] = level_[t];
      if (!IsOf(task, Phase::kBackward) || CanRunOnHost(task)) continue;
      int32_t& level = level_[t];
      if (task.kind == TaskKind::kComputeGradient) {
        const auto found = of_call.find(call);
        if (found != of_call.end()) level = found->second;
      } else {
        const auto bound = [&](BufferId id) {
          if (made[id] != kUnknown)
            level = level == kUnknown ? made[id] : std::min(level, made[id]);
        };
        for (BufferId id : task.reads) bound(id);
        if (task.kind == TaskKind::kAccumulate && !(Commutes() && level != kUnknown)) {
          bound(task.writes[0]);
        }
        if (level != kUnknown && Crosses(task)) level = NextLower(level, GroupOf(task));
      }
      for (BufferId id : task.writes) {
        if (id != kNoBuffer) made[id] = level;
      }
    }
  }
  int32_t NextLower(int32_t level, int32_t group) const {
    const auto found = place_.find(group);
    if (found == place_.end()) return kUnknown;
    do {
      --level;
    } while (level >= 0 && PlaceOf(level) != found->second);
    return std::max(level, kUnknown);
  }

  // What has no level yet has that of the first that needs it.
  void FindLevelsOfWhatIsNeeded() {
    std::vector<int32_t> needed(schedule_.buffers.size(), kUnknown);
    for (size_t t = schedule_.tasks.size(); t-- > 0;) {
      const Task& task = schedule_.tasks[t];
      if (!IsOf(task, Phase::kBackward)) continue;
      if (level_[t] == kUnknown) {
        for (BufferId id : task.writes) {
          if (id != kNoBuffer) level_[t] = std::max(level_[t], needed[id]);
        }
      }
      for (BufferId id : task.reads) {
        if (id != kNoBuffer) needed[id] = std::max(needed[id], level_[t]);
      }
      if (task.kind == TaskKind::kAccumulate) {
        needed[task.writes[0]] = std::max(needed[task.writes[0]], level_[t]);
      }
    }
  }

  // Every task has a level of its group, and needs no later one: then all that must come before
  // another does so in a pipeline of that many stages, too.
  bool IsConsistent() const {
    std::vector<std::pair<Phase, int32_t>> made(schedule_.buffers.size(), {Phase::kLoad, kUnknown});
    for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!IsOf(task, Phase::kForward) && !IsOf(task, Phase::kBackward)) continue;
      const auto found = place_.find(GroupOf(task));
      const int32_t level = level_[t];
      if (level == kUnknown || found == place_.end() || PlaceOf(level) != found->second) {
        return false;
      }
      const auto comes_before = [&](BufferId id) {
        if (id == kNoBuffer || made[id].first != task.phase) return true;
        const int32_t way =
            task.phase == Phase::kForward ? level - made[id].second : made[id].second - level;
        return way >= Crosses(task);
      };
      if (!std::all_of(task.reads.begin(), task.reads.end(), comes_before)) return false;
      if (task.kind == TaskKind::kAccumulate && !Commutes() && !comes_before(task.writes[0])) {
        return false;
      }
      for (BufferId id : task.writes) {
        if (id != kNoBuffer) made[id] = {task.phase, level};
      }
    }
    return true;
  }

  const Schedule& schedule_;
  PipelineStages& stages_;
  std::vector<int32_t> level_;        // by task
  std::map<int32_t, int32_t> place_;  // of groups: their first level
  int32_t num_stages_ = 0, num_chunks_ = 0;
  // The group where the way turns, and those of its calls that are of the second chunk.
  bool folds_ = false;
  int32_t turn_ = kUnknown;
  std::set<int32_t> behind_turn_;
};

}  // namespace

bool FindChunks(const Schedule& schedule, PipelineStages* stages) {
  return ChunkFinder(schedule, stages).Run();
}

}  // namespace isomer
