#include "pcg/profile.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "pcg/profile.pb.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {

std::string KernelKey(const Operator& op, absl::Span<const TensorType> operands, bool gradient) {
  const bool global_sizes = op.kind() == OpKind::kReshape || op.kind() == OpKind::kSplit;
  std::string key = global_sizes ? std::string(op.name()) : op.ToString();
  for (const TensorType& operand : operands) {
    absl::StrAppend(&key, " ", SequentialType(operand.LocalShape(), operand.dtype).ToString());
  }
  if (gradient) key += " gradient";
  return key;
}

const KernelTime* Profile::Find(const Operator& op, absl::Span<const TensorType> operands,
                                bool gradient) const {
  const auto found = kernels.find(KernelKey(op, operands, gradient));
  return found == kernels.end() ? nullptr : &found->second;
}

absl::Status SaveProfile(const std::string& path, const Profile& profile) {
  proto::ProfileProto message;
  message.set_backend(profile.backend);
  message.set_model(profile.model);
  for (const auto& [key, time] : profile.kernels) {
    proto::KernelTimeProto* kernel = message.add_kernels();
    kernel->set_kernel(key);
    kernel->set_median_us(time.median_us);
    kernel->set_min_us(time.min_us);
    kernel->set_max_us(time.max_us);
    kernel->set_repetitions(time.repetitions);
    kernel->set_flops(time.flops);
    kernel->set_bytes(time.bytes);
  }
  return SaveProto(path, "profile", message);
}

absl::StatusOr<Profile> LoadProfile(const std::string& path) {
  proto::ProfileProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "profile", &message));
  Profile profile{.backend = message.backend(), .model = message.model(), .kernels = {}};
  for (const proto::KernelTimeProto& kernel : message.kernels()) {
    for (double time : {kernel.median_us(), kernel.min_us(), kernel.max_us()}) {
      if (std::isfinite(time) && time >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": kernel '", kernel.kernel(), "': ", time, " is not a time"));
    }
    profile.kernels[kernel.kernel()] = {.median_us = kernel.median_us(),
                                        .min_us = kernel.min_us(),
                                        .max_us = kernel.max_us(),
                                        .repetitions = kernel.repetitions(),
                                        .flops = kernel.flops(),
                                        .bytes = kernel.bytes()};
  }
  return profile;
}

}  // namespace isomer
