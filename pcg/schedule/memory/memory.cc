#include "pcg/schedule/memory/memory.h"

#include <algorithm>
#include <numeric>

#include "pcg/schedule/memory/carries.h"
#include "pcg/schedule/memory/packing.h"
#include "pcg/schedule/memory/views.h"

namespace isomer {

const char* MemoryCategoryName(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kWeights:
      return "weights";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizerState:
      return "optimizer state";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kActivationGradients:
      return "activation gradients";
    case MemoryCategory::kReceived:
      return "received";
    case MemoryCategory::kCommunication:
      return "communication buffers";
    case MemoryCategory::kWorkspace:
      return "workspace";
  }
  return "?";
}

std::vector<std::vector<BufferId>> RowsOf(const Schedule& schedule) {
  std::vector<std::vector<BufferId>> rows;
  std::vector<bool> in_row(schedule.buffers.size(), false);
  for (const Task& task : schedule.tasks) {
    const bool whole = task.kind == TaskKind::kAllReduce || task.kind == TaskKind::kReduce ||
                       task.kind == TaskKind::kBroadcast;
    if (!whole || task.segments == 1) continue;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (size_t first = 0; first < list->size(); first += task.segments) {
        if (in_row[(*list)[first]]) continue;
        const auto begin = list->begin() + first;
        rows.emplace_back(begin, begin + task.segments);
        for (BufferId id : rows.back()) in_row[id] = true;
      }
    }
  }
  return rows;
}

std::vector<BufferId> FirstsOfMemory(const Schedule& schedule) {
  const std::vector<BufferId> holders = HoldersOf(schedule);
  std::vector<BufferId> firsts = holders;
  for (const std::vector<BufferId>& row : RowsOf(schedule)) {
    for (BufferId id : row) firsts[id] = row[0];
  }
  for (size_t id = 0; id < firsts.size(); ++id) firsts[id] = firsts[holders[id]];
  return firsts;
}

int64_t BytesOfRow(const Schedule& schedule, absl::Span<const BufferId> row) {
  int64_t bytes = 0;
  for (BufferId id : row) bytes = Aligned(bytes) + schedule.buffers[id].bytes();
  return bytes;
}

std::vector<LiveRange> LiveRanges(const Schedule& schedule) {
  std::vector<LiveRange> ranges(schedule.buffers.size());
  std::vector<bool> seen(schedule.buffers.size(), false);
  const int32_t num_tasks = static_cast<int32_t>(schedule.tasks.size());
  for (int32_t t = 0; t < num_tasks; ++t) {
    const Task& task = schedule.tasks[t];
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        if (id == kNoBuffer) continue;
        if (!seen[id]) ranges[id].first = t;
        seen[id] = true;
        ranges[id].last = t;
      }
    }
  }
  for (size_t id = 0; id < ranges.size(); ++id) {
    const BufferRole role = schedule.buffers[id].role;
    if (LivesThroughout(role)) {
      ranges[id] = {0, num_tasks - 1};
    } else if (role == BufferRole::kInput && seen[id]) {
      ranges[id].first = 0;
    }
  }
  // From step to step.
  for (const Task& task : schedule.tasks) {
    if (!IsCarry(schedule, task)) continue;
    for (BufferId id : task.writes) ranges[id] = {0, num_tasks - 1};
  }
  // Of all that are one piece of memory.
  const std::vector<BufferId> firsts = FirstsOfMemory(schedule);
  const auto is_touched = [&](size_t id) { return ranges[id].last >= ranges[id].first; };
  std::vector<LiveRange> pieces = ranges;
  for (size_t id = 0; id < ranges.size(); ++id) {
    LiveRange& all = pieces[firsts[id]];
    if (!is_touched(id)) continue;
    all = {std::min(all.first, ranges[id].first), std::max(all.last, ranges[id].last)};
  }
  for (size_t id = 0; id < ranges.size(); ++id) {
    if (is_touched(id)) ranges[id] = pieces[firsts[id]];
  }
  return ranges;
}

namespace {

// The category of each buffer.
std::vector<MemoryCategory> CategoriesOf(const Schedule& schedule) {
  std::vector<bool> stored(schedule.shardings.size(), false);  // by node
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    stored[parameter.tensor.node.value] = true;
  }
  std::vector<MemoryCategory> categories;
  for (const Buffer& buffer : schedule.buffers) {
    switch (buffer.role) {
      case BufferRole::kParameter:
      case BufferRole::kParameterShard:
        categories.push_back(MemoryCategory::kWeights);
        break;
      case BufferRole::kInput:
      case BufferRole::kActivation:
      case BufferRole::kSaved:
      case BufferRole::kOffloaded:
        categories.push_back(MemoryCategory::kActivations);
        break;
      case BufferRole::kReceived:
        // A weight that is stored in parts, while it is whole.
        categories.push_back(stored[buffer.tensor.node.value] ? MemoryCategory::kWeights
                                                              : MemoryCategory::kReceived);
        break;
      case BufferRole::kGradient:
        categories.push_back(stored[buffer.tensor.node.value]
                                 ? MemoryCategory::kGradients
                                 : MemoryCategory::kActivationGradients);
        break;
      case BufferRole::kGradientShard:
        categories.push_back(MemoryCategory::kGradients);
        break;
      case BufferRole::kState:
      case BufferRole::kMaster:
        categories.push_back(MemoryCategory::kOptimizerState);
        break;
    }
  }
  return categories;
}

// What lives on each device, whenever it may be more than before: `at`(task, device, now).
template <typename At>
void WalkMemory(const Schedule& schedule, At at) {
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  const std::vector<MemoryCategory> categories = CategoriesOf(schedule);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  // The buffers on devices that are touched, by that time.
  const auto by = [&](int32_t LiveRange::*time) {
    const auto counts = [&](size_t id) {
      return ranges[id].last >= ranges[id].first && holders[id] == static_cast<BufferId>(id) &&
             !IsOnHost(schedule, schedule.buffers[id]);
    };
    std::vector<int32_t> place(schedule.tasks.size() + 1, 0);
    for (size_t id = 0; id < ranges.size(); ++id) place[ranges[id].*time + 1] += counts(id);
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<BufferId> ids(place.back());
    for (size_t id = 0; id < ranges.size(); ++id) {
      if (counts(id)) ids[place[ranges[id].*time]++] = static_cast<BufferId>(id);
    }
    return ids;
  };
  const std::vector<BufferId> births = by(&LiveRange::first), deaths = by(&LiveRange::last);
  size_t born = 0, died = 0;
  std::vector<MemoryPeak> now(schedule.programs.size());
  const auto add = [&](int32_t device, MemoryCategory category, int64_t bytes) {
    now[device].bytes += bytes;
    now[device].categories[static_cast<int>(category)] += bytes;
  };
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const size_t first_born = born;
    for (; born < births.size() && ranges[births[born]].first == static_cast<int32_t>(t); ++born) {
      const BufferId id = births[born];
      add(schedule.buffers[id].device, categories[id], schedule.buffers[id].bytes());
    }
    const MemoryCategory of_scratch =
        IsCommunication(task.kind) ? MemoryCategory::kCommunication : MemoryCategory::kWorkspace;
    const auto compare = [&](int32_t device, int64_t scratch) {
      add(device, of_scratch, scratch);
      at(static_cast<int32_t>(t), device, now[device]);
      add(device, of_scratch, -scratch);
    };
    for (size_t i = first_born; i < born; ++i) compare(schedule.buffers[births[i]].device, 0);
    const std::vector<int64_t> scratch = ScratchBytesOf(schedule, task);
    for (size_t m = 0; m < scratch.size(); ++m) compare(task.devices[m], scratch[m]);
    for (; died < deaths.size() && ranges[deaths[died]].last == static_cast<int32_t>(t); ++died) {
      const BufferId id = deaths[died];
      add(schedule.buffers[id].device, categories[id], -schedule.buffers[id].bytes());
    }
  }
}

}  // namespace

std::vector<MemoryPeak> PeaksPerDevice(const Schedule& schedule) {
  std::vector<MemoryPeak> peaks(schedule.programs.size());
  WalkMemory(schedule, [&](int32_t task, int32_t device, const MemoryPeak& now) {
    if (now.bytes <= peaks[device].bytes) return;
    peaks[device] = now;
    peaks[device].task = task;
  });
  return peaks;
}

void ForEachMemoryUse(
    const Schedule& schedule,
    absl::FunctionRef<void(int32_t task, int32_t device, const MemoryPeak& now)> visit) {
  WalkMemory(schedule, visit);
}

MemoryPeak LargestPeak(const Schedule& schedule) {
  const std::vector<MemoryPeak> peaks = PeaksPerDevice(schedule);
  const auto largest =
      std::max_element(peaks.begin(), peaks.end(),
                       [](const MemoryPeak& a, const MemoryPeak& b) { return a.bytes < b.bytes; });
  return largest == peaks.end() ? MemoryPeak() : *largest;
}

std::vector<int64_t> PeakBytesPerDevice(const Schedule& schedule) {
  std::vector<int64_t> bytes;
  for (const MemoryPeak& peak : PeaksPerDevice(schedule)) bytes.push_back(peak.bytes);
  return bytes;
}

int64_t PeakBytes(const Schedule& schedule) { return LargestPeak(schedule).bytes; }

}  // namespace isomer
