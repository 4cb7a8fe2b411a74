#include "runtime/execution/make_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/cuda/cuda_backend.h"

namespace isomer {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name) {
  if (name == "cpu") return MakeCpuBackend();
  if (name == "cuda") {
    absl::StatusOr<CudaToolchain> toolchain = ThisCudaToolchain();
    if (!toolchain.ok()) {
      return absl::Status(toolchain.status().code(),
                          absl::StrCat("--backend=cuda: ", toolchain.status().message()));
    }
    return MakeCudaBackend(*std::move(toolchain));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--backend=", name, ": there are the backends cpu and cuda"));
}

}  // namespace isomer
