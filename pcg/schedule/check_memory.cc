#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check.h"

namespace isomer {

absl::Status CheckMemory(const Schedule& schedule, const MemoryPlan& plan) {
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  std::vector<std::map<int64_t, BufferId>> live(schedule.programs.size());  // by offset
  std::vector<std::vector<BufferId>> births(schedule.tasks.size()), deaths(births);
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (ranges[id].last < ranges[id].first) continue;
    births[ranges[id].first].push_back(static_cast<BufferId>(id));
    deaths[ranges[id].last].push_back(static_cast<BufferId>(id));
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (BufferId id : births[t]) {
      const Buffer& buffer = schedule.buffers[id];
      auto [at, inserted] = live[buffer.device].emplace(plan.offsets[id], id);
      const auto next = std::next(at);
      const bool overlaps_next =
          next != live[buffer.device].end() && at->first + buffer.bytes() > next->first;
      const bool overlaps_previous =
          at != live[buffer.device].begin() &&
          std::prev(at)->first + schedule.buffers[std::prev(at)->second].bytes() > at->first;
      if (!inserted || overlaps_next || overlaps_previous) {
        return absl::FailedPreconditionError(absl::StrCat(
            "schedule: device ", buffer.device, ", task ", t, " (",
            TaskKindName(schedule.tasks[t].kind), "): buffer ", id, " reuses memory that is live"));
      }
    }
    for (BufferId id : deaths[t]) {
      live[schedule.buffers[id].device].erase(plan.offsets[id]);
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
