// Where the buffers of each device lie in its arena.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "pcg/schedule/memory.h"
#include "pcg/schedule/packing.h"

namespace isomer {
namespace {

// Something that takes memory on a device for some tasks.
struct Item {
  LiveRange live;
  int64_t bytes;
  BufferId buffer = kNoBuffer;  // kNoBuffer: the scratch space of task live.first
};

// Offsets of items, and the end of the last.
struct Layout {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

int64_t Aligned(int64_t bytes) {
  constexpr int64_t kAlignment = MemoryPlan::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The items of every device.
std::vector<std::vector<Item>> ItemsOf(const Schedule& schedule) {
  std::vector<std::vector<Item>> items(schedule.programs.size());
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (ranges[id].last < ranges[id].first) continue;
    const Buffer& buffer = schedule.buffers[id];
    items[buffer.device].push_back(
        {ranges[id], Aligned(buffer.bytes()), static_cast<BufferId>(id)});
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const int32_t task = static_cast<int32_t>(t);
    const std::vector<PackBytes> scratch = PackBytesOf(schedule, schedule.tasks[t]);
    for (size_t m = 0; m < scratch.size(); ++m) {
      if (scratch[m].total() == 0) continue;
      items[schedule.tasks[t].devices[m]].push_back({{task, task}, Aligned(scratch[m].total())});
    }
  }
  return items;
}

// Lays items in the order given, each at the lowest place where it overlaps nothing that lives at
// one time with it.
Layout LayInOrder(const std::vector<Item>& items, const std::vector<size_t>& order) {
  Layout layout{std::vector<int64_t>(items.size(), 0)};
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const Item& item = items[i];
    int64_t offset = 0;
    for (size_t other : placed) {
      const bool meet =
          items[other].live.first <= item.live.last && item.live.first <= items[other].live.last;
      if (!meet) continue;
      if (layout.offsets[other] >= offset + item.bytes) break;
      offset = std::max(offset, layout.offsets[other] + items[other].bytes);
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + item.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; }),
        i);
  }
  return layout;
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

// Lays items as they come to life, each into the smallest free part that holds it.
Layout LayByTime(const std::vector<Item>& items) {
  Layout layout{std::vector<int64_t>(items.size(), 0)};
  std::vector<size_t> births(items.size());
  std::iota(births.begin(), births.end(), 0);
  std::vector<size_t> deaths = births;
  std::stable_sort(births.begin(), births.end(),
                   [&](size_t a, size_t b) { return items[a].live.first < items[b].live.first; });
  std::stable_sort(deaths.begin(), deaths.end(),
                   [&](size_t a, size_t b) { return items[a].live.last < items[b].live.last; });
  Arena arena;
  size_t dead = 0;
  for (size_t i : births) {
    for (; items[deaths[dead]].live.last < items[i].live.first; ++dead) {
      arena.Free(layout.offsets[deaths[dead]], items[deaths[dead]].bytes);
    }
    layout.offsets[i] = arena.Allocate(items[i].bytes);
  }
  layout.bytes = arena.end();
  return layout;
}

Layout BestLayout(const std::vector<Item>& items) {
  std::vector<size_t> by_size(items.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  // What lives throughout lies at the bottom.
  const int32_t end = std::accumulate(
      items.begin(), items.end(), int32_t{0},
      [](int32_t last, const Item& item) { return std::max(last, item.live.last); });
  const auto throughout = [&](const Item& item) {
    return item.live.first == 0 && item.live.last == end;
  };
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    return std::pair(throughout(items[a]), items[a].bytes) >
           std::pair(throughout(items[b]), items[b].bytes);
  });
  Layout by_time = LayByTime(items), in_order = LayInOrder(items, by_size);
  return in_order.bytes < by_time.bytes ? in_order : by_time;
}

}  // namespace

MemoryPlan PlanMemory(const Schedule& schedule) {
  MemoryPlan plan;
  plan.offsets.assign(schedule.buffers.size(), 0);
  for (const std::vector<Item>& items : ItemsOf(schedule)) {
    const Layout layout = BestLayout(items);
    plan.arena_bytes.push_back(layout.bytes);
    plan.scratch.emplace_back();
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].buffer != kNoBuffer) {
        plan.offsets[items[i].buffer] = layout.offsets[i];
      } else {
        plan.scratch.back()[items[i].live.first] = layout.offsets[i];
      }
    }
  }
  return plan;
}

}  // namespace isomer
