// Weights that are stored in parts and gathered for as long as they are used: stage 3 of ZeRO
// (Rajbhandari et al. 2020), or fully sharded data parallelism (Zhao et al., "PyTorch FSDP", 2023).
// Internal to pcg/schedule.
//
// Each of the devices with a copy of a weight's shard stores a slice of it, and every micro-batch
// has an all-gather of the slices before the first call that reads the copies. That is a move like
// any other: its reversal scatters the sum of the copies' gradients, micro-batch by micro-batch,
// to the slices, which are updated where they lie, with states as large; and the backward pass
// gathers again instead of keeping the copies (recomputation.h).
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_PARTS_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_PARTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// Slices are numbered from the first dim on. REQUIRES: there is a way (CutsOf).
Box Slice(Box box, int64_t part, int64_t parts);
// The inverse: which of `parts` slices of the box `slice` is.
int64_t PartOf(const Box& box, const Box& slice, int64_t parts);

// The method asked for.
UpdateMethod MethodAskedFor(const Graph& graph, const UpdateOptions& update,
                            const Schedule::HostTensor& parameter);

// Whether a parameter is stored in parts.
bool IsInParts(const Schedule& schedule, const Schedule::HostTensor& parameter);

class WeightParts {
 public:
  // `builder` must outlive this.
  explicit WeightParts(ScheduleBuilder* builder) : builder_(*builder) {}

  // Stores the parameter in parts if that is what is asked for and can be: its shards have equal
  // slices for their devices, and every one of `users` has its calls on just the devices and
  // micro-batches of the copies. Else false, and nothing is changed.
  absl::StatusOr<bool> Store(absl::Span<const NodeId> users, Schedule::HostTensor* parameter);
  // Adds the tasks that gather `tensor`, if it is in parts and they have not been added.
  void Gather(TensorRef tensor);

 private:
  // The copies of a shard: shards by device and micro-batch.
  using Copies = std::map<int32_t, std::map<int32_t, size_t>>;
  // Empty if it cannot be stored in parts.
  absl::StatusOr<std::vector<Copies>> PiecesOf(TensorRef tensor) const;

  ScheduleBuilder& builder_;
  std::map<TensorRef, std::vector<Task>> gathers_;  // to be added
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_WEIGHT_PARTS_H_
