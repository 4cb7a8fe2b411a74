// A profile: what the tasks of schedules take on one kind of device, measured. isomer-profile
// writes it, the cost model of the optimizer reads it; what it lacks is estimated
// (pcg/profile/calibration.h).
//
//   kernels  by KernelKey: one task of a call, forward or gradient
//   tables   by size: "fill", "accumulate", "update", "local" (element-wise tasks of one device, by
//            Task::bytes) and "all_reduce threads 2" (kind, communicator, group size; by the bytes
//            that Task::bytes counts)
#ifndef ISOMER_PCG_PROFILE_PROFILE_H_
#define ISOMER_PCG_PROFILE_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/support/digest.h"

namespace isomer {

struct KernelTime {
  double median_us = 0, lower_us = 0, upper_us = 0;  // median and quartiles
  int repetitions = 0;
  // What pcg/profile/work.h counts for it, and the kernels it is like, so that others can be
  // estimated.
  double flops = 0;
  int64_t bytes = 0;
  // Beside its operands and results: the workspace that it asks for, and the most that its library
  // took from the heap; 0 where that is unknown.
  int64_t workspace_bytes = 0, library_bytes = 0;
  std::string family = {};
};

void AddToDigest(Digest* digest, const KernelTime& time);

// What the time of one task of a call depends on: the operator, its attributes, the local shapes of
// the operands, the pass, and whose gradients it computes:
//   "matmul f32[8,64] f32[64,64]"               forward: `wanted` is empty
//   "matmul f32[8,64] f32[64,64] gradient -+"   the gradient of the second operand alone
// Left out is what is global in the operator (Reshape's shape, Split's sizes) or does not matter
// (Dropout's salt). Operands of a window that is split, whose tasks read a halo, are marked by
// their degrees: "conv2d(..) f32[8,16,14,28] f32[16,16,3,3] split 2x1".
std::string KernelKey(const Operator& op, absl::Span<const TensorType> operands,
                      const std::vector<bool>& wanted);
// Kernels that one formula in FLOPs and bytes describes: "matmul f32", "matmul f32 gradient".
std::string KernelFamily(const Operator& op, absl::Span<const TensorType> operands, bool gradient);

// The device that a profile is of. Times of another are another's.
struct ProfiledDevice {
  std::string backend;         // "cpu"
  std::string processor;       // "Intel(R) Xeon(R) Processor (6.207.2)"
  std::string libraries = {};  // "oneDNN 2.6.3"
  int busy_devices = 1;        // how many devices did the same at the same time
  bool pinned = false;         // to a core each
  friend bool operator==(const ProfiledDevice&, const ProfiledDevice&) = default;
  std::string ToString() const;
};
void AddToDigest(Digest* digest, const ProfiledDevice& device);
// Of the computer that this runs on: name, and family.model.stepping; "unknown processor" where the
// system does not tell.
std::string HostProcessor();

struct SizeTime {
  int64_t bytes = 0;
  double median_us = 0, lower_us = 0, upper_us = 0;
  int repetitions = 0;
};

void AddToDigest(Digest* digest, const SizeTime& time);

// Times over sizes, ascending. Between two sizes the time is interpolated on logarithmic scales;
// below the first it is the first's, above the last it grows in proportion to the bytes. Never
// falling: noise that makes a larger size faster is levelled out.
class SizeTable {
 public:
  SizeTable() = default;
  // Sorts; of equal sizes the last counts.
  explicit SizeTable(std::vector<SizeTime> times);
  const std::vector<SizeTime>& times() const { return times_; }
  bool empty() const { return times_.empty(); }
  // REQUIRES: !empty().
  double UsOf(int64_t bytes) const;
  // The least that UsOf is of any size, by its bytes.
  double LeastUsPerByte() const { return us_per_byte_; }

 private:
  std::vector<SizeTime> times_;
  std::vector<double> us_;  // levelled
  double us_per_byte_ = 0;
};

void AddToDigest(Digest* digest, const SizeTable& table);

// "all_reduce threads 2".
std::string CollectiveKey(absl::string_view kind, absl::string_view communicator,
                          int64_t group_size);

struct Profile {
  ProfiledDevice device;
  std::vector<std::string> models;            // whose calls were measured
  std::map<std::string, KernelTime> kernels;  // by KernelKey
  std::map<std::string, SizeTable> tables;
  double task_overhead_us = 0;  // of the executor, for every kernel beside the kernel itself

  // Null if it was not measured.
  const KernelTime* Find(const Operator& op, absl::Span<const TensorType> operands,
                         const std::vector<bool>& wanted) const;
  const SizeTable* FindTable(absl::string_view key) const;
};

void AddToDigest(Digest* digest, const Profile& profile);

// Files of kind "profile". Reading refuses times that are negative or not finite, sizes that do not
// ascend, and a profile that does not say whose it is.
absl::Status SaveProfile(const std::string& path, const Profile& profile);
absl::StatusOr<Profile> LoadProfile(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_PROFILE_H_
