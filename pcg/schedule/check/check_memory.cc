#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/memory/views.h"

namespace isomer {
namespace {

// What lives in an arena: end and buffer (kNoBuffer: scratch space), by offset.
using Live = std::map<int64_t, std::pair<int64_t, BufferId>>;

// Whether [offset, offset + bytes) overlaps nothing that lives.
bool IsFree(const Live& live, int64_t offset, int64_t bytes) {
  const auto next = live.lower_bound(offset);
  if (next != live.end() && offset + bytes > next->first) return false;
  if (next != live.end() && next->first == offset) return false;
  return next == live.begin() || std::prev(next)->second.first <= offset;
}

}  // namespace

absl::Status CheckMemory(const Schedule& schedule, const MemoryPlan& plan) {
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  std::vector<Live> on_device(schedule.programs.size()), on_host(on_device);
  const auto live_beside = [&](const Buffer& buffer) -> Live& {
    return (IsOnHost(schedule, buffer) ? on_host : on_device)[buffer.device];
  };
  std::vector<std::vector<BufferId>> births(schedule.tasks.size()), deaths(births);
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (ranges[id].last < ranges[id].first) continue;
    if (holders[id] != static_cast<BufferId>(id)) {
      if (plan.offsets[id] == plan.offsets[holders[id]]) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "schedule: buffer ", id, " does not lie where buffer ", holders[id], " does"));
    }
    births[ranges[id].first].push_back(static_cast<BufferId>(id));
    deaths[ranges[id].last].push_back(static_cast<BufferId>(id));
  }
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const auto error = [&](int32_t device, const std::string& what) {
      return absl::FailedPreconditionError(absl::StrCat("schedule: device ", device, ", task ", t,
                                                        " (", TaskKindName(task.kind), "): ", what,
                                                        " reuses memory that is live"));
    };
    for (BufferId id : births[t]) {
      const Buffer& buffer = schedule.buffers[id];
      const int64_t offset = plan.offsets[id];
      Live& live = live_beside(buffer);
      if (!IsFree(live, offset, buffer.bytes())) {
        return error(buffer.device, absl::StrCat("buffer ", id));
      }
      live[offset] = {offset + buffer.bytes(), id};
    }
    const std::vector<int64_t> scratch = ScratchBytesOf(schedule, task);
    for (size_t m = 0; m < scratch.size(); ++m) {
      const int32_t device = task.devices[m];
      const int64_t bytes = scratch[m];
      const int64_t offset = plan.ScratchOffset(static_cast<int32_t>(t), device);
      if (bytes > 0 && !IsFree(on_device[device], offset, bytes)) {
        return error(device, "its scratch space");
      }
    }
    for (BufferId id : deaths[t]) {
      live_beside(schedule.buffers[id]).erase(plan.offsets[id]);
    }
  }
  for (const std::vector<BufferId>& row : RowsOf(schedule)) {
    for (size_t i = 1; i < row.size(); ++i) {
      const int64_t end = plan.offsets[row[i - 1]] + schedule.buffers[row[i - 1]].bytes();
      if (plan.offsets[row[i]] == Aligned(end)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("schedule: buffer ", row[i], " is not next to buffer ", row[i - 1]));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
