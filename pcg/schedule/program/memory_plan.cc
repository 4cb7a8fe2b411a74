// Where the buffers of each device lie in its arena.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/schedule/program/queue_lives.h"

namespace isomer {
namespace {

// Something that takes memory on a device for some tasks.
struct Item {
  LiveRange live;
  int64_t bytes;
  std::vector<BufferId> buffers = {};  // in a row; none: the scratch space of `task`
  int32_t task = -1;
  bool is_workspace = false;  // of a kernel: there is one at a time
};

// Offsets of items, and the end of the last.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

// The items of every device. `holders`: HoldersOf(schedule).
std::vector<std::vector<Item>> ItemsOf(const Schedule& schedule,
                                       const std::vector<BufferId>& holders) {
  std::vector<std::vector<Item>> items(schedule.programs.size());
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  std::vector<bool> placed(ranges.size(), false);
  const auto add = [&](std::vector<BufferId> row) {
    for (BufferId id : row) placed[id] = true;
    const int64_t bytes = Aligned(BytesOfRow(schedule, row));
    items[schedule.buffers[row[0]].device].push_back({ranges[row[0]], bytes, std::move(row)});
  };
  for (std::vector<BufferId>& row : RowsOf(schedule)) add(std::move(row));
  for (size_t id = 0; id < ranges.size(); ++id) {
    const bool is_touched = ranges[id].last >= ranges[id].first;
    const bool is_held = holders[id] != static_cast<BufferId>(id);
    if (placed[id] || !is_touched || is_held || IsOnHost(schedule, schedule.buffers[id])) continue;
    add({static_cast<BufferId>(id)});
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const int32_t task = static_cast<int32_t>(t);
    const bool is_workspace = !IsCommunication(schedule.tasks[t].kind);
    const std::vector<int64_t> scratch = ScratchBytesOf(schedule, schedule.tasks[t]);
    for (size_t m = 0; m < scratch.size(); ++m) {
      if (scratch[m] == 0) continue;
      items[schedule.tasks[t].devices[m]].push_back(
          {{task, task}, Aligned(scratch[m]), {}, task, is_workspace});
    }
  }
  return items;
}

// Has what communications use live for as long as they may run beside computations. `first_of`:
// FirstsOfMemory.
void WidenForQueues(const Schedule& schedule, const std::vector<BufferId>& first_of,
                    std::vector<std::vector<Item>>* items) {
  for (size_t d = 0; d < items->size(); ++d) {
    absl::flat_hash_map<BufferId, Item*> of_buffer;
    absl::flat_hash_map<int32_t, Item*> of_task;
    for (Item& item : (*items)[d]) {
      if (item.buffers.empty()) {
        of_task[item.task] = &item;
      } else {
        of_buffer[item.buffers[0]] = &item;
      }
    }
    for (const auto& [t, live] : CommunicationLives(schedule, static_cast<int32_t>(d))) {
      const auto widen = [&, t = t, live = live](Item* item) {
        if (item->live.first == t) item->live.first = std::min(t, live.first);
        item->live.last = std::max(item->live.last, live.last);
      };
      if (const auto scratch = of_task.find(t); scratch != of_task.end()) widen(scratch->second);
      for (const BufferList* list : {&schedule.tasks[t].reads, &schedule.tasks[t].writes}) {
        for (BufferId id : *list) {
          if (id == kNoBuffer) continue;
          // Others are of another device, or on the host.
          if (const auto item = of_buffer.find(first_of[id]); item != of_buffer.end()) {
            widen(item->second);
          }
        }
      }
    }
  }
}

// What is placed, by offset.
class PlacedItems {
 public:
  // The lowest place for `item`, from `base` on, where it overlaps nothing placed that lives at one
  // time with it.
  int64_t LowestPlace(const Item& item, int64_t base) const {
    int64_t offset = base;
    for (const Placed& other : placed_) {
      const bool meet = other.live.first <= item.live.last && item.live.first <= other.live.last;
      if (!meet) continue;
      if (other.begin >= offset + item.bytes) break;
      offset = std::max(offset, other.end);
    }
    return offset;
  }

  void Add(const Item& item, int64_t offset) {
    const auto behind =
        std::upper_bound(placed_.begin(), placed_.end(), offset,
                         [](int64_t at, const Placed& other) { return at < other.begin; });
    placed_.insert(behind, {item.live, offset, offset + item.bytes});
  }

 private:
  // Copied from items, as all of them are read in a row for each.
  struct Placed {
    LiveRange live;
    int64_t begin, end;
  };
  std::vector<Placed> placed_;
};

// Lays items in the order given, each at the lowest place where it overlaps nothing that lives at
// one time with it. The first `throughout` meet all others, so that they lie side by side below.
// Stops where that takes `limit` bytes: its offsets are then those of the first alone.
Placement LayInOrder(const std::vector<Item>& items, const std::vector<size_t>& order,
                     size_t throughout, int64_t limit) {
  Placement placement{std::vector<int64_t>(items.size(), 0)};
  for (size_t i = 0; i < throughout; ++i) {
    placement.offsets[order[i]] = placement.bytes;
    placement.bytes += items[order[i]].bytes;
  }
  const int64_t base = placement.bytes;
  PlacedItems placed;  // above the base
  for (size_t i : absl::MakeConstSpan(order).subspan(throughout)) {
    placement.offsets[i] = placed.LowestPlace(items[i], base);
    placement.bytes = std::max(placement.bytes, placement.offsets[i] + items[i].bytes);
    if (placement.bytes >= limit) break;
    placed.Add(items[i], placement.offsets[i]);
  }
  return placement;
}

// The free parts of an arena that grows at its end.
class Arena {
 public:
  int64_t Allocate(int64_t bytes) {
    // The smallest that holds it; of equal ones the lowest.
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best == by_size_.end()) {
      // Extend the last free part if it touches the end.
      int64_t offset = end_;
      if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == end_) {
        offset = free_.rbegin()->first;
        Remove(std::prev(free_.end()));
      }
      end_ = offset + bytes;
      return offset;
    }
    const auto [size, offset] = *best;
    Remove(free_.find(offset));
    if (size > bytes) Add(offset + bytes, size - bytes);
    return offset;
  }

  void Free(int64_t offset, int64_t bytes) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = Remove(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        Remove(previous);
      }
    }
    Add(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  using Parts = std::map<int64_t, int64_t>;

  void Add(int64_t offset, int64_t size) {
    free_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  Parts::iterator Remove(Parts::iterator part) {
    by_size_.erase({part->second, part->first});
    return free_.erase(part);
  }

  Parts free_;                                     // offset -> size; no two adjacent
  std::set<std::pair<int64_t, int64_t>> by_size_;  // the same: size, offset
  int64_t end_ = 0;
};

// Lays items as they come to life, each into the smallest free part that holds it.
Placement LayByTime(const std::vector<Item>& items) {
  Placement placement{std::vector<int64_t>(items.size(), 0)};
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
      arena.Free(placement.offsets[deaths[dead]], items[deaths[dead]].bytes);
    }
    placement.offsets[i] = arena.Allocate(items[i].bytes);
  }
  placement.bytes = arena.end();
  return placement;
}

// What laying in order of sizes takes grows with the square of items, and beyond these only best
// fit in order of time is tried.
constexpr size_t kMostInOrder = 4096;

// The most bytes that live at one time: no placement has less.
int64_t LeastBytes(const std::vector<Item>& items) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // deaths of a time come after its births
  for (const Item& item : items) {
    changes.emplace_back(2 * int64_t{item.live.first}, item.bytes);
    changes.emplace_back(2 * int64_t{item.live.last} + 1, -item.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (const auto& [time, bytes] : changes) most = std::max(most, now += bytes);
  return most;
}

Placement BestOfBoth(const std::vector<Item>& items) {
  Placement by_time = LayByTime(items);
  if (by_time.bytes == LeastBytes(items)) return by_time;
  std::vector<size_t> by_size(items.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  // What lives throughout lies at the bottom.
  const int32_t end = std::accumulate(
      items.begin(), items.end(), int32_t{0},
      [](int32_t last, const Item& item) { return std::max(last, item.live.last); });
  const auto throughout = [&](const Item& item) {
    return item.live.first == 0 && item.live.last == end;
  };
  const auto count = static_cast<size_t>(std::count_if(items.begin(), items.end(), throughout));
  if (items.size() - count > kMostInOrder) return by_time;
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    return std::pair(throughout(items[a]), items[a].bytes) >
           std::pair(throughout(items[b]), items[b].bytes);
  });
  Placement in_order = LayInOrder(items, by_size, count, by_time.bytes);
  return in_order.bytes < by_time.bytes ? in_order : by_time;
}

Placement BestPlacement(const std::vector<Item>& items) {
  std::vector<Item> others;
  for (const Item& item : items) {
    if (!item.is_workspace) others.push_back(item);
  }
  Placement best = BestOfBoth(items);
  if (others.size() == items.size() || best.bytes == LeastBytes(items)) return best;
  // Workspaces may keep apart what would lie side by side. So all else first, and each of them at
  // the lowest place that is free then: behind the rest at the worst, or where that takes too long.
  const Placement without = BestOfBoth(others);
  if (without.bytes >= best.bytes) return best;
  Placement filled{{}, without.bytes};
  PlacedItems placed;
  const bool looks = others.size() <= kMostInOrder;
  for (size_t i = 0; looks && i < others.size(); ++i) placed.Add(others[i], without.offsets[i]);
  size_t other = 0;
  for (const Item& item : items) {
    const int64_t offset = !item.is_workspace ? without.offsets[other++]
                                              : placed.LowestPlace(item, looks ? 0 : without.bytes);
    filled.offsets.push_back(offset);
    filled.bytes = std::max(filled.bytes, offset + item.bytes);
  }
  return filled.bytes < best.bytes ? filled : best;
}

// What a placement depends on: sizes, and which items live at one time. Times become places in the
// order of all times that occur, so that devices that do the same are alike.
using Lives = std::vector<std::tuple<int32_t, int32_t, int64_t>>;

Lives LivesOf(const std::vector<Item>& items) {
  std::vector<int32_t> times;
  for (const Item& item : items) {
    times.push_back(item.live.first);
    times.push_back(item.live.last);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto place = [&](int32_t time) {
    return static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  Lives lives;
  for (const Item& item : items) {
    lives.emplace_back(place(item.live.first), place(item.live.last), item.bytes);
  }
  return lives;
}

// The optimizer's states live throughout; above them lies what is offloaded.
void PlanHostMemory(const Schedule& schedule, MemoryPlan* plan) {
  plan->host_bytes.assign(schedule.programs.size(), 0);
  std::map<int32_t, std::vector<BufferId>> offloaded;  // by device
  for (size_t id = 0; id < schedule.buffers.size(); ++id) {
    const Buffer& buffer = schedule.buffers[id];
    if (!IsOnHost(schedule, buffer)) continue;
    if (!LivesThroughout(buffer.role)) {
      offloaded[buffer.device].push_back(static_cast<BufferId>(id));
      continue;
    }
    plan->offsets[id] = plan->host_bytes[buffer.device];
    plan->host_bytes[buffer.device] += Aligned(buffer.bytes());
  }
  if (offloaded.empty()) return;
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  for (const auto& [device, ids] : offloaded) {
    std::vector<Item> items;
    for (BufferId id : ids) {
      items.push_back({ranges[id], Aligned(schedule.buffers[id].bytes()), {id}});
    }
    const Placement placement = BestPlacement(items);
    int64_t& bytes = plan->host_bytes[device];
    for (size_t i = 0; i < ids.size(); ++i) plan->offsets[ids[i]] = bytes + placement.offsets[i];
    bytes += placement.bytes;
  }
}

}  // namespace

MemoryPlan PlanMemory(const Schedule& schedule, int32_t num_queues) {
  MemoryPlan plan;
  plan.offsets.assign(schedule.buffers.size(), 0);
  PlanHostMemory(schedule, &plan);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  std::vector<std::vector<Item>> all = ItemsOf(schedule, holders);
  if (num_queues > 1) {
    WidenForQueues(schedule, FirstsOfMemory(schedule), &all);
  }
  absl::flat_hash_map<Lives, Placement> placements;
  for (const std::vector<Item>& items : all) {
    const auto [known, added] = placements.try_emplace(LivesOf(items));
    if (added) known->second = BestPlacement(items);
    const Placement& placement = known->second;
    plan.arena_bytes.push_back(placement.bytes);
    plan.scratch.emplace_back();
    for (size_t i = 0; i < items.size(); ++i) {
      int64_t offset = placement.offsets[i];
      if (items[i].buffers.empty()) plan.scratch.back()[items[i].task] = offset;
      for (BufferId id : items[i].buffers) {
        plan.offsets[id] = offset;
        offset += Aligned(schedule.buffers[id].bytes());
      }
    }
  }
  for (size_t id = 0; id < holders.size(); ++id) plan.offsets[id] = plan.offsets[holders[id]];
  return plan;
}

}  // namespace isomer
