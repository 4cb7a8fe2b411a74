// Times of tasks and collectives on a machine.
//
// Compute: kernel_cost.h. Collectives: measured times where the profile has them, else
// collective_cost.h.
#ifndef ISOMER_OPTIMIZER_COST_COST_H_
#define ISOMER_OPTIMIZER_COST_COST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "optimizer/cost/collective_cost.h"
#include "optimizer/cost/kernel_cost.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/profile/profile.h"
#include "pcg/profile/work.h"

namespace isomer {

// In place of a device: the slowest one.
inline constexpr int64_t kSlowest = -1;

class CostModel {
 public:
  // `profile` may be null, and must outlive this.
  explicit CostModel(Machine machine, const Profile* profile = nullptr);
  const Machine& machine() const { return machine_; }
  const Profile* profile() const { return profile_; }

  // Roofline time in us of a device, or of the slowest one (kSlowest), with FLOPs at the
  // matrix-product rate of `dtype`.
  double ComputeUs(double flops, int64_t bytes, DataType dtype = DataType::kFloat32,
                   int64_t device = kSlowest) const;
  // One task of a call on operands of these types; if `wanted` is not empty, of the gradient of
  // those operands.
  TaskTime CallTime(const Operator& op, absl::Span<const TensorType> operands,
                    const std::vector<bool>& wanted, const Work& work,
                    int64_t device = kSlowest) const;
  // The same in us, for a search: 0 where the result may be a view of its operand
  // (pcg/schedule/memory/views.h), which it may be unless that is stored.
  double CallUs(const Operator& op, absl::Span<const TensorType> operands,
                const std::vector<bool>& wanted, const Work& work,
                int64_t device = kSlowest) const {
    return IsView(op, operands) ? 0 : CallTime(op, operands, wanted, work, device).us;
  }
  static bool IsView(const Operator& op, absl::Span<const TensorType> operands);
  // A task of kind fill, accumulate, local or update; `bytes` as Task::bytes.
  TaskTime ElementwiseTime(TaskKind kind, int64_t bytes, int64_t device = kSlowest) const;
  // Additional us of a communication whose devices pack `sent` bytes first, and unpack `received`
  // bytes (pcg/schedule/memory/packing.h).
  double PackingUs(int64_t sent, int64_t received) const;
  // Minimum additional us of a call that accesses `bytes` more, to add to a sum or in the sum's
  // type; in whole picoseconds.
  double AddingUs(int64_t bytes, int64_t device = kSlowest) const;
  // SGD on a stored tensor of `bytes`: reads parameter and gradient, writes the parameter.
  double UpdateUs(int64_t bytes, int64_t device = kSlowest) const {
    return ElementwiseTime(TaskKind::kUpdate, 3 * bytes, device).us;
  }
  // Minimum additional us in a bucketed update, which is launched anyway.
  double SharedUpdateUs(int64_t bytes, int64_t device = kSlowest) const;
  const KernelCost& kernels() const { return kernels_; }
  // The first device of every kind among these.
  std::vector<int64_t> OnePerKind(absl::Span<const int64_t> devices) const;
  // `bytes` as in CollectiveCost::Us.
  double CollectiveUs(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;
  double CollectiveUs(Collective kind, int64_t bytes, const DeviceGroup& group) const;
  // The profile's measurement of a communication of Task::bytes among these devices, if any.
  std::optional<double> MeasuredUs(TaskKind kind, int64_t bytes,
                                   absl::Span<const int32_t> devices) const;
  const CollectiveCost& collectives() const { return collectives_; }
  // Microseconds for `bytes` from one device to another over otherwise idle links.
  double SendUs(int64_t bytes, int32_t from, int32_t to) const;
  // Whether all devices are of one kind.
  bool uniform() const { return kinds_.size() == 1; }
  // The innermost level whose unit contains both devices; -1 for a device and itself.
  int LevelBetween(int64_t a, int64_t b) const {
    if (a == b) return -1;
    const int32_t *of_a = &units_[a * num_levels_], *of_b = &units_[b * num_levels_];
    int level = 0;
    while (of_a[level] != of_b[level]) ++level;
    return level;
  }

 private:
  // The maximum of `time_of(roofline)` over the kinds that `device` may be.
  double LeastElementwiseUs(TaskKind kind, int64_t bytes, int64_t device) const;
  template <typename TimeOf>
  TaskTime Slowest(int64_t device, DataType dtype, TimeOf time_of, bool fp8 = false) const;

  std::optional<double> MeasuredUs(TaskKind kind, int64_t bytes, int64_t count, int64_t first,
                                   int64_t last) const;

  Machine machine_;
  const Profile* profile_;
  KernelCost kernels_;
  MeasuredCollectives measured_collectives_;
  CollectiveCost collectives_;
  std::vector<int> kinds_;  // in use
  int num_levels_;
  std::vector<int32_t> units_;  // [device][level]: its unit
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_COST_H_
