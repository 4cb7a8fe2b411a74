#include "optimizer/report/memory_over_step.h"

#include <algorithm>

#include "optimizer/cost/memory_cost.h"
#include "optimizer/cost/workspace.h"

namespace isomer {

MemoryOverStep MemoryOf(const CostModel& cost, const LoweredPlan& lowered,
                        const Simulation& simulation, absl::Span<const int32_t> devices, int bins) {
  // Workspaces are the cost model's to say.
  Schedule schedule = lowered.schedule;
  MemoryOverStep memory;
  memory.arena_bytes =
      PredictMemory(cost.profile(), lowered.mapped.graph, RunsOnCores(cost.machine()),
                    NumQueuesOfDevice(cost.machine()), &schedule)
          .bytes_per_device;
  for (int32_t device : devices) memory.devices[device].bins.resize(bins);
  const auto makespan = static_cast<double>(std::max<Picoseconds>(1, simulation.timeline.makespan));
  ForEachMemoryUse(schedule, [&](int32_t task, int32_t device, const MemoryPeak& now) {
    const auto found = memory.devices.find(device);
    if (found == memory.devices.end()) return;
    const auto start = static_cast<double>(simulation.timeline.start[task]);
    MemoryBins::Bin& bin =
        found->second.bins[std::clamp(static_cast<int>(bins * start / makespan), 0, bins - 1)];
    if (!bin.is_known || now.bytes > bin.most.bytes) bin.most = now;
    bin.last = now;
    bin.is_known = true;
    found->second.peak_bytes = std::max(found->second.peak_bytes, now.bytes);
    for (int c = 0; c < kNumMemoryCategories; ++c) memory.is_used[c] |= now.categories[c] > 0;
  });
  return memory;
}

}  // namespace isomer
