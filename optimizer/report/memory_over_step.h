// How much memory devices use over a simulated step.
#ifndef ISOMER_OPTIMIZER_REPORT_MEMORY_OVER_STEP_H_
#define ISOMER_OPTIMIZER_REPORT_MEMORY_OVER_STEP_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {

// Of one device, for each of equal parts of the step.
struct MemoryBins {
  struct Bin {
    MemoryPeak most, last;  // what lives when most does, and what lives at its end
    bool is_known = false;  // else it is as at the end of the bin before
  };
  std::vector<Bin> bins;
  int64_t peak_bytes = 0;
};

struct MemoryOverStep {
  std::map<int32_t, MemoryBins> devices;
  std::array<bool, kNumMemoryCategories> is_used = {};  // by any of them
  // Per device of the schedule, what it needs: what lives at the peak, the gaps between buffers,
  // what libraries allocate.
  std::vector<int64_t> arena_bytes;
};

// With the workspaces of kernels, in the order of the schedule, at the times at which its tasks
// start. `simulation` is that of `lowered`.
MemoryOverStep MemoryOf(const CostModel& cost, const LoweredPlan& lowered,
                        const Simulation& simulation, absl::Span<const int32_t> devices, int bins);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_MEMORY_OVER_STEP_H_
