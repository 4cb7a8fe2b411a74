// What tasks and collectives cost on a machine.
//
// Compute: see kernel_cost.h. Collectives: the profile's times where it has them, else those of
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
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/profile/profile.h"
#include "pcg/profile/work.h"

namespace isomer {

// Instead of a device: whichever is slowest.
inline constexpr int64_t kSlowest = -1;

class CostModel {
 public:
  // `profile` may be null, and must outlive this.
  explicit CostModel(Machine machine, const Profile* profile = nullptr);
  const Machine& machine() const { return machine_; }
  const Profile* profile() const { return profile_; }

  // The roofline of a device, or of the slowest one (kSlowest). FLOPs at the rate of matrix
  // products of `dtype`.
  double ComputeUs(double flops, int64_t bytes, DataType dtype = DataType::kFloat32,
                   int64_t device = kSlowest) const;
  // One task of a call on operands of these types; with `wanted` not empty, of its gradient with
  // respect to those operands.
  TaskTime CallTime(const Operator& op, absl::Span<const TensorType> operands,
                    const std::vector<bool>& wanted, const Work& work,
                    int64_t device = kSlowest) const;
  // The same for a search: nothing, where its result may lie where its operand does
  // (pcg/schedule/memory/views.h), which it may wherever that is not stored.
  double CallUs(const Operator& op, absl::Span<const TensorType> operands,
                const std::vector<bool>& wanted, const Work& work,
                int64_t device = kSlowest) const {
    return IsView(op, operands) ? 0 : CallTime(op, operands, wanted, work, device).us;
  }
  static bool IsView(const Operator& op, absl::Span<const TensorType> operands);
  // A task of kind fill, accumulate, local or update, of Task::bytes.
  TaskTime ElementwiseTime(TaskKind kind, int64_t bytes, int64_t device = kSlowest) const;
  // What a communication takes longer whose devices copy so many bytes before they send, and so
  // many that they received (pcg/schedule/memory/packing.h).
  double PackingUs(int64_t sent, int64_t received) const;
  // What a call takes longer at least that reads and writes so many bytes more, to add to a sum or
  // in its type; in whole picoseconds.
  double AddingUs(int64_t bytes, int64_t device = kSlowest) const;
  // SGD on a stored tensor: reads parameter and gradient, writes the parameter.
  double UpdateUs(int64_t bytes, int64_t device = kSlowest) const {
    return ElementwiseTime(TaskKind::kUpdate, 3 * bytes, device).us;
  }
  // What it adds at least to an update of others, which has been launched.
  double SharedUpdateUs(int64_t bytes, int64_t device = kSlowest) const;
  const KernelCost& kernels() const { return kernels_; }
  // Of these devices, the first of every kind.
  std::vector<int64_t> OnePerKind(absl::Span<const int64_t> devices) const;
  // `bytes` as in CollectiveCost::Us.
  double CollectiveUs(Collective kind, int64_t bytes, absl::Span<const int32_t> devices) const;
  double CollectiveUs(Collective kind, int64_t bytes, const DeviceGroup& group) const;
  // What the profile says of a communication of Task::bytes among these devices, if it does.
  std::optional<double> MeasuredUs(TaskKind kind, int64_t bytes,
                                   absl::Span<const int32_t> devices) const;
  const CollectiveCost& collectives() const { return collectives_; }
  // `bytes` from one device to another over links that nothing else uses.
  double SendUs(int64_t bytes, int32_t from, int32_t to) const;
  // Devices are of one kind.
  bool uniform() const { return kinds_.size() == 1; }
  // The level whose unit is the first to hold both devices; -1 for one device and itself.
  int LevelBetween(int64_t a, int64_t b) const {
    if (a == b) return -1;
    const int32_t *of_a = &units_[a * num_levels_], *of_b = &units_[b * num_levels_];
    int level = 0;
    while (of_a[level] != of_b[level]) ++level;
    return level;
  }

 private:
  // The greatest of `time_of(roofline)` over the kinds that `device` may be.
  double LeastElementwiseUs(TaskKind kind, int64_t bytes, int64_t device) const;
  template <typename TimeOf>
  TaskTime Slowest(int64_t device, DataType dtype, TimeOf time_of) const;

  std::optional<double> MeasuredUs(TaskKind kind, int64_t bytes, int64_t count, int64_t first,
                                   int64_t last) const;

  Machine machine_;
  const Profile* profile_;
  KernelCost kernels_;
  MeasuredCollectives measured_collectives_;
  CollectiveCost collectives_;
  std::vector<int> kinds_;  // in use
  int num_levels_;
  std::vector<int32_t> units_;  // per device and level: the unit that it is in
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_COST_H_
