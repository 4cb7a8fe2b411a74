// cuDNN's graphs, by its manual, computed on the devices of fake_cuda_driver.h: what a graph says
// is what comes out, operation by operation.
#ifndef ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDNN_H_
#define ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDNN_H_

#include <atomic>

#include "runtime/cuda/cudnn.h"

namespace isomer {

Cudnn FakeCudnn();
// How many graphs were computed so far.
extern std::atomic<int> fake_cudnn_runs;
// What it has no plan for.
enum class FakeCudnnRefuses { kNothing, kGradients, kAll };
extern std::atomic<FakeCudnnRefuses> fake_cudnn_refuses;

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDNN_H_
