// NCCL between the devices of fake_cuda_driver.h, by its manual.
#ifndef ISOMER_TESTS_RUNTIME_CUDA_FAKE_NCCL_H_
#define ISOMER_TESTS_RUNTIME_CUDA_FAKE_NCCL_H_

#include <atomic>
#include <functional>

#include "runtime/cuda/nccl.h"

namespace isomer {

Nccl FakeNccl();
// How many collectives and groups of messages were done so far, by all ranks.
extern std::atomic<int> fake_nccl_calls;
// The rank that is asked for, of any communicator, never does another collective; -1: none.
extern std::atomic<int> fake_nccl_hangs;

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_CUDA_FAKE_NCCL_H_
