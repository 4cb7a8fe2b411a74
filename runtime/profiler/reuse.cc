#include "runtime/profiler/reuse.h"

#include <algorithm>
#include <array>

#include "absl/algorithm/container.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {
namespace {

// When each part of an arena was touched last.
class Recency {
 public:
  Recency(int64_t arena_bytes, const CacheSizes& caches) : caches_(caches) {
    // Parts of pages, but so few that looking at all of them is cheap.
    constexpr int64_t kPage = 4096, kMostParts = 8192;
    part_bytes_ = std::max(kPage, arena_bytes / kMostParts);
    last_.assign(arena_bytes / part_bytes_ + 1, kNever);
  }

  // Of its parts as many are nearer as are farther.
  CacheLevel LevelOf(int64_t offset, int64_t bytes) {
    if (bytes == 0) return CacheLevel::kNear;
    std::vector<int64_t> times(last_.begin() + offset / part_bytes_,
                               last_.begin() + (offset + bytes - 1) / part_bytes_ + 1);
    const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    if (*middle == kNever) return CacheLevel::kMemory;
    const auto is_since = [&](int64_t time) { return time >= *middle; };
    const int64_t since =
        part_bytes_ * (absl::c_count_if(last_, is_since) - absl::c_count_if(times, is_since));
    return since <= caches_.near   ? CacheLevel::kNear
           : since <= caches_.last ? CacheLevel::kLast
                                   : CacheLevel::kMemory;
  }

  // A task begins: what it touches it touches in turn, now this and now that.
  void NextTask() { ++now_; }
  void Touch(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    std::fill(last_.begin() + offset / part_bytes_,
              last_.begin() + (offset + bytes - 1) / part_bytes_ + 1, now_);
  }

 private:
  static constexpr int64_t kNever = -1;
  const CacheSizes caches_;
  int64_t part_bytes_;
  std::vector<int64_t> last_;
  int64_t now_ = 0;
};

}  // namespace

std::vector<FoundByTask> FindInCaches(const Graph& graph, const Schedule& schedule,
                                      const CacheSizes& caches) {
  std::vector<FoundByTask> found(schedule.tasks.size());
  const MemoryPlan memory = PlanMemory(schedule);
  for (size_t d = 0; d < schedule.programs.size(); ++d) {
    Recency recency(memory.arena_bytes[d], caches);
    const auto is_here = [&](BufferId id) {
      return id != kNoBuffer && schedule.buffers[id].device == static_cast<int32_t>(d) &&
             !IsOnHost(schedule, schedule.buffers[id]);
    };
    const auto level_of = [&](BufferId id) {
      if (is_here(id)) return recency.LevelOf(memory.offsets[id], schedule.buffers[id].bytes());
      const bool is_far = id != kNoBuffer && IsOnHost(schedule, schedule.buffers[id]);
      return is_far ? CacheLevel::kMemory : CacheLevel::kNear;
    };
    // The step before, and this one.
    for (const bool records : {false, true}) {
      for (int32_t t : schedule.programs[d]) {
        const Task& task = schedule.tasks[t];
        if (task.phase == Phase::kLoad || task.is_view) continue;
        const bool looks_up = IsOfKernel(task.kind) && IsLookUp(graph.node(task.node).op.kind());
        if (records && !IsCommunication(task.kind)) {
          for (BufferId id : task.reads) found[t].reads.push_back(level_of(id));
          for (BufferId id : task.writes) found[t].writes.push_back(level_of(id));
          if (looks_up) found[t].reads[0] = CacheLevel::kMemory;
        }
        recency.NextTask();
        const auto touch = [&](BufferId id) {
          if (is_here(id)) recency.Touch(memory.offsets[id], schedule.buffers[id].bytes());
        };
        for (size_t i = looks_up ? 1 : 0; i < task.reads.size(); ++i) touch(task.reads[i]);
        for (BufferId id : task.writes) touch(id);
      }
    }
  }
  return found;
}

CacheLevel FoundByUpdates(const Schedule& schedule, const std::vector<FoundByTask>& found) {
  std::array<int64_t, 3> bytes = {};  // by level
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    if (task.kind != TaskKind::kUpdate) continue;
    for (size_t i = 0; i < found[t].reads.size(); ++i) {
      bytes[static_cast<int>(found[t].reads[i])] += schedule.buffers[task.reads[i]].bytes();
    }
  }
  return static_cast<CacheLevel>(absl::c_max_element(bytes) - bytes.begin());
}

}  // namespace isomer
