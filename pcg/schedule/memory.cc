#include "pcg/schedule/memory.h"

#include <algorithm>
#include <map>

#include "pcg/support/check.h"

namespace isomer {

std::vector<LiveRange> LiveRanges(const Schedule& schedule) {
  std::vector<LiveRange> ranges(schedule.buffers.size());
  std::vector<bool> seen(schedule.buffers.size(), false);
  const int32_t num_tasks = static_cast<int32_t>(schedule.tasks.size());
  for (int32_t t = 0; t < num_tasks; ++t) {
    const Task& task = schedule.tasks[t];
    for (const std::vector<BufferId>* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id == kNoBuffer) continue;
        if (!seen[id]) ranges[id].first = t;
        seen[id] = true;
        ranges[id].last = t;
      }
    }
  }
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (schedule.buffers[id].role == BufferRole::kParameter) ranges[id] = {0, num_tasks - 1};
  }
  return ranges;
}

namespace {

// Buffers by the task at which they come to life, and by the task after which they die.
struct Events {
  std::vector<std::vector<BufferId>> births, deaths;
};

Events EventsOf(const Schedule& schedule) {
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  Events events;
  events.births.resize(schedule.tasks.size());
  events.deaths.resize(schedule.tasks.size());
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (ranges[id].last < ranges[id].first) continue;
    events.births[ranges[id].first].push_back(static_cast<BufferId>(id));
    events.deaths[ranges[id].last].push_back(static_cast<BufferId>(id));
  }
  return events;
}

// The free parts of an arena that grows at its end.
class Arena {
 public:
  int64_t Allocate(int64_t bytes) {
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->second >= bytes && (best == free_.end() || at->second < best->second)) best = at;
    }
    if (best == free_.end()) {
      // Extend the last free part if it touches the end.
      int64_t offset = end_;
      if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == end_) {
        offset = free_.rbegin()->first;
        free_.erase(offset);
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [offset, size] = *best;
    free_.erase(best);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    return offset;
  }

  void Free(int64_t offset, int64_t bytes) {
    auto at = free_.emplace(offset, bytes).first;
    if (auto next = std::next(at); next != free_.end() && offset + bytes == next->first) {
      at->second += next->second;
      free_.erase(next);
    }
    if (at != free_.begin()) {
      auto previous = std::prev(at);
      if (previous->first + previous->second == at->first) {
        previous->second += at->second;
        free_.erase(at);
      }
    }
  }

  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> free_;  // offset -> size; no two adjacent
  int64_t end_ = 0;
};

int64_t Aligned(int64_t bytes) {
  constexpr int64_t kAlignment = MemoryPlan::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::vector<int64_t> PeakBytesPerDevice(const Schedule& schedule) {
  const Events events = EventsOf(schedule);
  std::vector<int64_t> live(schedule.programs.size(), 0), peak = live;
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (BufferId id : events.births[t]) {
      const Buffer& buffer = schedule.buffers[id];
      live[buffer.device] += buffer.bytes();
      peak[buffer.device] = std::max(peak[buffer.device], live[buffer.device]);
    }
    for (BufferId id : events.deaths[t]) {
      live[schedule.buffers[id].device] -= schedule.buffers[id].bytes();
    }
  }
  return peak;
}

int64_t PeakBytes(const Schedule& schedule) {
  const std::vector<int64_t> peaks = PeakBytesPerDevice(schedule);
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

MemoryPlan PlanMemory(const Schedule& schedule) {
  const Events events = EventsOf(schedule);
  std::vector<Arena> arenas(schedule.programs.size());
  MemoryPlan plan;
  plan.offsets.assign(schedule.buffers.size(), 0);
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (BufferId id : events.births[t]) {
      const Buffer& buffer = schedule.buffers[id];
      plan.offsets[id] = arenas[buffer.device].Allocate(Aligned(buffer.bytes()));
    }
    for (BufferId id : events.deaths[t]) {
      const Buffer& buffer = schedule.buffers[id];
      arenas[buffer.device].Free(plan.offsets[id], Aligned(buffer.bytes()));
    }
  }
  for (const Arena& arena : arenas) plan.arena_bytes.push_back(arena.end());
  return plan;
}

}  // namespace isomer
