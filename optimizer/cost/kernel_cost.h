// What the tasks of one device take: measured where the profile has them, else estimated from
// measured neighbours, else the roofline of the machine file.
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

// Where a time comes from, best first.
enum class TimeOrigin { kMeasured, kCalibrated, kRoofline };
const char* TimeOriginName(TimeOrigin origin);

struct TaskTime {
  double us = 0;
  TimeOrigin origin = TimeOrigin::kRoofline;
  double beyond_links_us = 0;  // at its end, when others may use its links again
};

// launch + max(flops / peak, bytes / memory bandwidth).
struct Roofline {
  double launch_us = 0, flops_per_us = 1, memory_bytes_per_us = 1;
  double Us(double flops, double bytes) const;
};

class KernelCost {
 public:
  // `profile` may be null, and must outlive this.
  explicit KernelCost(const Profile* profile);

  // One task of a call on operands of these types; with `wanted` not empty, the gradients of those
  // operands.
  TaskTime CallTime(const Operator& op, absl::Span<const TensorType> operands,
                    const std::vector<bool>& wanted, const Work& work,
                    const Roofline& roofline) const;
  // A task of kind fill, accumulate, local or update, of Task::bytes.
  TaskTime ElementwiseTime(TaskKind kind, int64_t bytes, const Roofline& roofline) const;
  // What so many bytes add to such a task at least, at the best rate that it has at any size.
  double LeastElementwiseUs(TaskKind kind, int64_t bytes, const Roofline& roofline) const;

  // What calibrated times were fitted to so far, with the errors on kernels left out.
  std::vector<Calibration::HeldOut> Calibrations() const;

 private:
  const Profile* profile_;
  std::unique_ptr<Calibration> calibration_;  // null without a profile
  std::map<TaskKind, const SizeTable*> tables_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::tuple<std::string, double, int64_t>, double> estimates_;
  mutable std::map<std::string, int> used_;  // estimates by what they were fitted to
};

// A profile serves the devices it was measured on: of the cpu backend the cores of this computer
// (machines whose devices are called cores or CPUs), of others those of the profile's name. The
// error is one line that names both.
absl::Status CheckProfileServes(const Profile& profile, const Machine& machine);

// The measured collectives of a profile. Within one node: how nodes are joined was not measured.
class MeasuredCollectives {
 public:
  // `communicator`: "threads", "mpi"; "": that of the profile, threads if it has several.
  // `profile` may be null, and must outlive this.
  explicit MeasuredCollectives(const Profile* profile, const std::string& communicator = "");
  // Null if this kind was not measured in groups of so many. REQUIRES: IsCommunication(kind).
  const SizeTable* Find(TaskKind kind, int64_t group_size) const;

 private:
  std::map<std::pair<TaskKind, int64_t>, const SizeTable*> tables_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_KERNEL_COST_H_
