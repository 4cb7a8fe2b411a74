// Kernel times on one device: measured where the profile has them, else calibrated to measured
// neighbours, else the machine file's roofline.
#ifndef ISOMER_OPTIMIZER_COST_KERNEL_COST_H_
#define ISOMER_OPTIMIZER_COST_KERNEL_COST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/profile/calibration.h"
#include "pcg/profile/profile.h"
#include "pcg/profile/work.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Origin of a time, best first.
enum class TimeOrigin { kMeasured, kCalibrated, kRoofline };
const char* TimeOriginName(TimeOrigin origin);

struct TaskTime {
  double us = 0;
  TimeOrigin origin = TimeOrigin::kRoofline;
  double beyond_links_us = 0;  // final part, in which its links are free again
};

// launch + max(flops / peak, bytes / memory bandwidth), in us.
struct Roofline {
  double launch_us = 0, flops_per_us = 1, memory_bytes_per_us = 1;
  const DeviceKind* kind = nullptr;  // what products and attention reach; null: all of the peak
  double Us(double flops, double bytes) const;
};

class KernelCost {
 public:
  // `profile` may be null, and must outlive this.
  explicit KernelCost(const Profile* profile);

  // One task of a call on operands of these types; if `wanted` is not empty, of the gradients of
  // those operands.
  TaskTime CallTime(const Operator& op, absl::Span<const TensorType> operands,
                    const std::vector<bool>& wanted, const Work& work,
                    const Roofline& roofline) const;
  // A task of kind fill, accumulate, local or update; `bytes` as Task::bytes.
  TaskTime ElementwiseTime(TaskKind kind, int64_t bytes, const Roofline& roofline) const;
  // Minimum us that `bytes` add to such a task, at its best rate over all sizes.
  double LeastElementwiseUs(TaskKind kind, int64_t bytes, const Roofline& roofline) const;

  // Calibrations used so far, with their errors on held-out kernels.
  std::vector<Calibration::HeldOut> Calibrations() const;

 private:
  const Profile* profile_;
  std::unique_ptr<Calibration> calibration_;  // null without a profile
  std::map<TaskKind, const SizeTable*> tables_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::tuple<std::string, double, int64_t>, double> estimates_;
  mutable std::map<std::string, int> used_;  // estimates per calibration
};

// Checks that the profile was measured on the machine's devices: a profile of the cpu backend
// serves machines whose devices are called cores or CPUs, on this computer; others serve devices of
// the profile's name. The error is one line that names both.
absl::Status CheckProfileServes(const Profile& profile, const Machine& machine);

// A profile's measured collectives, within one node: links between nodes were not measured.
class MeasuredCollectives {
 public:
  // `communicator`: "threads" or "mpi"; "": the profile's, threads if it has several. `profile` may
  // be null, and must outlive this.
  explicit MeasuredCollectives(const Profile* profile, const std::string& communicator = "");
  // Null: not measured for this kind and group size. REQUIRES: IsCommunication(kind).
  const SizeTable* Find(TaskKind kind, int64_t group_size) const;

 private:
  std::map<std::pair<TaskKind, int64_t>, const SizeTable*> tables_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_KERNEL_COST_H_
