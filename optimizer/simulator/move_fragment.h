// Memoised task fragments of single moves: a value from its producer's placement to a consumer's,
// and its gradient back.
//
// The lowering itself (pcg/schedule) makes them, from graphs of one call or of two tensors; what
// makes a transfer a collective is not known here.
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

// A device has at most one shard of a tensor, so devices name shards.
struct MoveTask {
  Picoseconds duration = 0, beyond_links = 0;  // as in TaskList::Add
  bool communicates = false;                   // else it is on one device's compute queue
  std::vector<int32_t> queues;
  std::vector<int32_t> reads, writes;  // devices
};

struct MoveFragment {
  // A new shard on a device, and the time of adding to its gradient there: by a task of its own, or
  // by the call that computes the summand.
  struct Shard {
    int32_t device;
    Picoseconds accumulate, adding;
  };
  std::vector<MoveTask> forward;
  // Reads gradients of the moved shards, writes summands of the source's gradients.
  std::vector<MoveTask> backward;
  std::vector<Shard> received;
  std::vector<int32_t> stays;  // devices that keep their shard
  std::string signature;       // equal for equal boxes on equal devices
};

// Adds the move of `from` to `to`, two inputs of the builder's graph for one logical tensor: the
// shards of both on these devices, and the tasks between them.
void LowerMove(TensorRef from, TensorRef to, absl::Span<const int64_t> from_devices,
               absl::Span<const int64_t> to_devices, ScheduleBuilder* builder);

// The tasks of a chain of parallel operators from one placement to the other. REQUIRES: two
// placements of one logical tensor.
absl::StatusOr<MoveFragment> ChainFragment(const CostModel& cost, const Placement& from,
                                           const Placement& to, bool training);

// A call under one choice.
struct CallFragment {
  std::vector<int32_t> devices;  // per task
  // Per task, its duration: forward without and with a gradient to follow (SavedForGradient), and
  // backward.
  std::vector<Picoseconds> forward, saving;
  std::vector<Picoseconds> gradient;
  bool keeps_order = false;  // a view (KeepsOrder)
  // Per operand: transfers of elements that tasks need and their devices lack, because they are
  // elsewhere or beyond the shard (halos).
  std::vector<MoveFragment> arrivals;
};
// `operands`: actual placements, with the types of the choice. `wanted`: operands whose gradient is
// computed; none: there is no gradient task. `stored`: operand 0 is a stored tensor.
absl::StatusOr<CallFragment> FragmentOfCall(const CostModel& cost, const Operator& op,
                                            absl::Span<const Placement> operands,
                                            const MachineView& output_view,
                                            const std::vector<bool>& wanted, bool stored);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_MOVE_FRAGMENT_H_
