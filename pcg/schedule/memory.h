// How much memory a schedule takes on each device, and where its buffers lie.
//
// A buffer lives from the first task of a step that writes it to the last that uses it; parameters
// live throughout. Activations that the backward pass reads are thereby kept until it has.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_H_

#include <cstdint>
#include <vector>

#include "pcg/schedule/schedule.h"

namespace isomer {

// First and last task that touches each buffer, by index in Schedule::tasks. Parameters: from the
// first task to the last. Buffers nobody touches: [0, -1].
struct LiveRange {
  int32_t first = 0, last = -1;
};
std::vector<LiveRange> LiveRanges(const Schedule& schedule);

// The largest sum of the sizes of buffers that live at one time, per device.
std::vector<int64_t> PeakBytesPerDevice(const Schedule& schedule);
// Of the device that needs most.
int64_t PeakBytes(const Schedule& schedule);

// A static arena per device: every buffer has an offset, and buffers that live at one time do not
// overlap. Best fit, in order of tasks.
struct MemoryPlan {
  static constexpr int64_t kAlignment = 64;
  std::vector<int64_t> offsets;      // per buffer, in the arena of its device
  std::vector<int64_t> arena_bytes;  // per device; at least the peak
};
MemoryPlan PlanMemory(const Schedule& schedule);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_H_
