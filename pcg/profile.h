// A profile: measured times of kernels on one backend. isomer-profile writes it, the cost model of
// the optimizer reads it; where it has no entry the cost model falls back on its roofline.
#ifndef ISOMER_PCG_PROFILE_H_
#define ISOMER_PCG_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/operator.h"
#include "pcg/tensor_type.h"

namespace isomer {

struct KernelTime {
  double median_us = 0, min_us = 0, max_us = 0;
  int repetitions = 0;
  // What pcg/work.h counts for it, so that a roofline can be fitted.
  double flops = 0;
  int64_t bytes = 0;
};

// What the time of one task of a call depends on: the operator, its attributes, the local shapes of
// the operands, and the pass: "matmul f32[8,64] f32[64,64]", "... gradient". The gradient is that
// of all float operands. (Reshape's shape and Split's sizes are global in the operator; the key
// leaves them out.)
std::string KernelKey(const Operator& op, absl::Span<const TensorType> operands, bool gradient);

struct Profile {
  std::string backend;
  std::string model;
  std::map<std::string, KernelTime> kernels;  // by KernelKey

  // Null if it was not measured.
  const KernelTime* Find(const Operator& op, absl::Span<const TensorType> operands,
                         bool gradient) const;
};

// Files of kind "profile". Reading refuses times that are negative or not finite.
absl::Status SaveProfile(const std::string& path, const Profile& profile);
absl::StatusOr<Profile> LoadProfile(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_H_
