// A CUDA driver for tests without a GPU: devices whose memory the host cannot touch, whose
// streams do nothing until they are waited for, in an order that is drawn (fake_streams.h), and
// whose kernels are the host compiler's.
#ifndef ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDA_DRIVER_H_
#define ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDA_DRIVER_H_

#include <atomic>
#include <string>

#include "runtime/cuda/cuda_backend.h"
#include "tests/runtime/cuda/fake_streams.h"

namespace isomer {

// How many texts were compiled so far.
extern std::atomic<int> fake_cuda_compilations;
// How many products were computed, of a batch one.
extern std::atomic<int> fake_cuda_products;
// The library of products has no algorithm for any.
extern std::atomic<bool> fake_cuda_refuses_products;
extern std::atomic<bool> fake_cuda_refuses_sums;  // CUBLASLT_EPILOGUE_BGRADA
// A device has so much memory; what is beyond is refused.
inline constexpr int64_t kFakeCudaBytes = int64_t{1} << 30;
inline constexpr int kMostFakeGpus = 64;

// The device whose context is the thread's.
fake::StreamDevice* FakeCurrentDevice();
// Of so many GPUs, on this process's fakes alone from then on. Compiled code is kept in
// `cache_folder`; empty: nowhere.
CudaToolchain FakeCudaToolchain(int gpus, const std::string& cache_folder = "");

}  // namespace isomer

#endif  // ISOMER_TESTS_RUNTIME_CUDA_FAKE_CUDA_DRIVER_H_
