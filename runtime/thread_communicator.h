// The in-process communicator: ranks are threads that meet and read each other's memory.
#ifndef ISOMER_RUNTIME_THREAD_COMMUNICATOR_H_
#define ISOMER_RUNTIME_THREAD_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/communicator.h"

namespace isomer {

// One communicator per rank, to be used from one thread each. A call that waits longer than
// `timeout` for another rank aborts the job and says for whom it waited.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(
    int32_t num_ranks, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace isomer

#endif  // ISOMER_RUNTIME_THREAD_COMMUNICATOR_H_
