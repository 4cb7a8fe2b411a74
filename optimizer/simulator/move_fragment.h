// The tasks of single moves, made once and kept: how a value gets from where one call leaves it to
// where another needs it, and its gradient back.
//
// They come from the lowering itself (pcg/schedule), which is run on graphs of one call, or of two
// tensors; nothing here knows what makes a transfer a collective.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_MOVE_FRAGMENT_H_
#define ISOMER_OPTIMIZER_SIMULATOR_MOVE_FRAGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/timeline.h"
#include "optimizer/sharding/sharding_choice.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// A device holds at most one shard of a tensor, so a device names a shard.
struct MoveTask {
  Picoseconds duration = 0, beyond_links = 0;  // as TaskList::Add has it
  bool communicates = false;                   // else it is on the compute queue of one device
  std::vector<int32_t> queues;
  std::vector<int32_t> reads, writes;  // devices
};

struct MoveFragment {
  // A shard that is new on its device, and how long adding to its gradient takes there, by a task
  // or by the call that makes what is added.
  struct Shard {
    int32_t device;
    Picoseconds accumulate, adding;
  };
  std::vector<MoveTask> forward;
  // Reads gradients of what was moved, writes shares of those of where it came from.
  std::vector<MoveTask> backward;
  std::vector<Shard> received;
  std::vector<int32_t> stays;  // devices whose shard is the one that was there
  std::string signature;       // equal for equal boxes on equal devices
};

// Adds what moves `from` to `to`, two inputs of the builder's graph of one logical tensor: the
// shards of both on these devices, and the tasks between them.
void LowerMove(TensorRef from, TensorRef to, absl::Span<const int64_t> from_devices,
               absl::Span<const int64_t> to_devices, ScheduleBuilder* builder);

// What a chain of parallel operators that leads from one placement to the other does.
// REQUIRES: two placements of one logical tensor.
absl::StatusOr<MoveFragment> ChainFragment(const CostModel& cost, const Placement& from,
                                           const Placement& to, bool training);

// A call as one choice spreads it.
struct CallFragment {
  std::vector<int32_t> devices;  // per task
  // Per task, its duration: forward, for no gradient to come and for one (SavedForGradient).
  std::vector<Picoseconds> forward, saving;
  std::vector<Picoseconds> gradient;
  bool keeps_order = false;  // it moves nothing (KeepsOrder)
  // Per operand: what the tasks need and their devices do not hold, because they lie elsewhere or
  // reach beyond their shard (halos).
  std::vector<MoveFragment> arrivals;
};
// `operands`: where they are; their types are those of the choice. `wanted`: operands whose
// gradient is computed; none: there is no gradient task. `stored`: operand 0 is a stored tensor.
absl::StatusOr<CallFragment> FragmentOfCall(const CostModel& cost, const Operator& op,
                                            absl::Span<const Placement> operands,
                                            const MachineView& output_view,
                                            const std::vector<bool>& wanted, bool stored);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_MOVE_FRAGMENT_H_
