// How much memory a schedule takes on each device, for what, and where its buffers lie.
//
// A buffer lives from the first task of a step that writes it to the last that uses it; inputs,
// which the host sets before, from the first task; parameters and the optimizer's states
// throughout. Activations that the backward pass reads are thereby kept until it has, gradients of
// weights until the update (or, of sharded updates, until their part is scattered). Those of a
// bucket live together, as they lie in a row and travel so. Other communications pack into memory
// that they have while they run, and so do kernels with their workspaces (packing.h).
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_MEMORY_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_MEMORY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Buffers of one device that are summed or broadcast as one (Task::segments) lie in a row: each
// begins where the one before it ends, at the next multiple of kAlignment. A bucket's gradients are
// thus summed where they were made, without being packed, as PyTorch's DDP does with
// gradient_as_bucket_view.
inline constexpr int64_t kAlignment = 64;
inline int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
// No buffer is in two.
std::vector<std::vector<BufferId>> RowsOf(const Schedule& schedule);
// Per buffer, the one that stands for the piece of memory that it is part of: the first of the row
// of its holder (views.h), or that.
std::vector<BufferId> FirstsOfMemory(const Schedule& schedule);
// From the first byte of a row to its last, what lies between buffers included.
int64_t BytesOfRow(const Schedule& schedule, absl::Span<const BufferId> row);

// First and last task that touches each buffer, or one in its row or with its bytes (views.h), by
// index in Schedule::tasks.
// Parameters and states, those of the model included: from the first task to the last; inputs from
// the first. Buffers nobody
// touches: [0, -1].
struct LiveRange {
  int32_t first = 0, last = -1;
};
std::vector<LiveRange> LiveRanges(const Schedule& schedule);

enum class MemoryCategory {
  kWeights,    // stored tensors, and updated parts of them until they are gathered
  kGradients,  // of stored tensors
  kOptimizerState,
  kActivations,  // and inputs
  kActivationGradients,
  kReceived,       // operands from other devices, or with halos
  kCommunication,  // packed pieces
  kWorkspace,      // of kernels
};
inline constexpr int kNumMemoryCategories = 8;
const char* MemoryCategoryName(MemoryCategory category);  // "weights"

// What lives on a device when most does.
struct MemoryPeak {
  int64_t bytes = 0;
  int32_t task = -1;  // the first at which it does
  std::array<int64_t, kNumMemoryCategories> categories = {};
  int64_t of(MemoryCategory category) const { return categories[static_cast<int>(category)]; }
};
std::vector<MemoryPeak> PeaksPerDevice(const Schedule& schedule);
// What lives on a device at each of its tasks, in order of tasks, whenever it has become more (or
// was, and scratch space is used). `now.task` is not set.
void ForEachMemoryUse(
    const Schedule& schedule,
    absl::FunctionRef<void(int32_t task, int32_t device, const MemoryPeak& now)> visit);
// Of the device that needs most.
MemoryPeak LargestPeak(const Schedule& schedule);

std::vector<int64_t> PeakBytesPerDevice(const Schedule& schedule);
int64_t PeakBytes(const Schedule& schedule);

// Whether a buffer lies in the host's memory, and takes none of its device.
inline bool IsOnHost(const Schedule& schedule, const Buffer& buffer) {
  if (buffer.role == BufferRole::kOffloaded) return true;
  const bool is_of_optimizer =
      buffer.role == BufferRole::kState || buffer.role == BufferRole::kMaster;
  return is_of_optimizer && schedule.options.update.states_on_host;
}

// A static arena per device: every buffer has an offset, and so has the scratch space of every
// communication that packs, and every workspace; what lives at one time does not overlap, and rows
// are rows.
struct MemoryPlan {
  std::vector<int64_t> offsets;      // per buffer, in the arena of its device
  std::vector<int64_t> arena_bytes;  // per device; at least the peak
  std::vector<int64_t> host_bytes;   // per device: of an arena for it in the host's memory
  std::vector<absl::flat_hash_map<int32_t, int64_t>> scratch;  // per device: offsets by task
  // 0 if the task needs none.
  int64_t ScratchOffset(int32_t task, int32_t device) const {
    const auto at = scratch[device].find(task);
    return at == scratch[device].end() ? 0 : at->second;
  }
};
// `num_queues`: kMostQueues where devices run communications beside computations: the arena is then
// large enough that one hardly waits for the other's bytes (queue_lives.h). Of two heuristics the
// one that needs less, per device: the largest first, each as low as it can lie (Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020), and best fit in order of
// tasks. Workspaces are laid with the rest or into what it leaves, so that they never take more
// than the largest of them behind all else.
MemoryPlan PlanMemory(const Schedule& schedule, int32_t num_queues = 1);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_MEMORY_H_
