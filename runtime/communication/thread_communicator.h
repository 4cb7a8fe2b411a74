// The in-process communicator: ranks are threads that meet and read each other's memory.
#ifndef ISOMER_RUNTIME_COMMUNICATION_THREAD_COMMUNICATOR_H_
#define ISOMER_RUNTIME_COMMUNICATION_THREAD_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "runtime/device/communicator.h"
#include "runtime/device/device_operations.h"

namespace isomer {

// One communicator per rank, to be used from one thread at a time (Abort: from any). A call that
// waits longer than `timeout` for another rank aborts the job and says for whom it waited.
// `threads_per_rank`: how many threads a rank has in all, which may want a core each.
std::vector<std::unique_ptr<HostCommunicator>> MakeThreadCommunicators(
    int32_t num_ranks, std::chrono::milliseconds timeout = std::chrono::seconds(60),
    int32_t threads_per_rank = 1);

// Of the same ranks, for tensors in memory that only `operations` reaches, which must outlive them;
// errors of either reach those that wait in the other. REQUIRES: `ranks` is what
// MakeThreadCommunicators returned.
std::vector<std::unique_ptr<Communicator>> MakeDeviceCommunicators(
    absl::Span<const std::unique_ptr<HostCommunicator>> ranks, DeviceOperations* operations);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_THREAD_COMMUNICATOR_H_
