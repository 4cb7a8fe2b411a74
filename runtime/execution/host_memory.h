// The memory of the computer that a job runs on: what cannot fit is refused before it is tried.
#ifndef ISOMER_RUNTIME_EXECUTION_HOST_MEMORY_H_
#define ISOMER_RUNTIME_EXECUTION_HOST_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Memory and swap space in bytes, or less where this process is in a control group with a limit.
int64_t HostMemoryBytes();

// ResourceExhausted, of a plural: "the weights of llama_70b need 1.1 TiB, and this computer
// has 23.5 GiB".
absl::Status CheckFitsHost(const std::string& what, int64_t bytes);

// Devices of a job without other processes, each a thread.
inline constexpr int64_t kMostDeviceThreads = 256;
// Ok if the devices of the plan are no more than these.
absl::Status CheckRunsInThreads(const Plan& plan);

// What the devices together hold at least once: weights and, in training, masters and states.
int64_t LeastBytesOfModel(const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_HOST_MEMORY_H_
