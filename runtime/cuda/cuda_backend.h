// NVIDIA GPUs: memory and streams by the driver, products by cuBLASLt, all other kernels generated
// from declarations and compiled when they are first wanted. A device's work is given to one
// stream, in the order in which it is asked for, and runs while the host goes on; what the host
// reads waits for it.
#ifndef ISOMER_RUNTIME_CUDA_CUDA_BACKEND_H_
#define ISOMER_RUNTIME_CUDA_CUDA_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/products.h"
#include "runtime/device/backend.h"

namespace isomer {

// Where GPUs and their code come from.
struct CudaToolchain {
  CudaDriver driver;
  CublasLt products;
  // Opened for plans of several GPUs.
  std::function<absl::StatusOr<Nccl>()> open_nccl;
  // Opened for attention; without it, products do.
  std::function<absl::StatusOr<Cudnn>()> open_cudnn;
  // What the driver loads, made of CUDA C++ text for an architecture ("sm_90").
  std::function<absl::StatusOr<std::string>(absl::string_view text, absl::string_view architecture)>
      compile;
  // "NVRTC 13.0": code of another is another's.
  std::string compiler;
  // Where compiled code is kept between runs, by content; empty: nowhere.
  std::string cache_folder;
  int64_t most_part_bytes = kMostPartBytes;
};
// The driver, cuBLASLt and NVRTC of this computer; code is kept in $XDG_CACHE_HOME/isomer/kernels,
// or below
// ~/.cache. Unavailable: says which of them is missing.
absl::StatusOr<CudaToolchain> ThisCudaToolchain();

// Device d of a process is GPU d; whoever asks for memory or a kernel of one that is not there is
// told so. Where there is one GPU alone it is all devices, one after the other: what plans of
// several compute can be looked at, and not how fast they are.
std::unique_ptr<Backend> MakeCudaBackend(CudaToolchain toolchain);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUDA_BACKEND_H_
