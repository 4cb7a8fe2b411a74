// Compiles kernels while a program runs, by NVIDIA's NVRTC, which is looked for then: a build needs
// no CUDA toolkit, and a machine that only compiles needs no GPU.
#ifndef ISOMER_RUNTIME_CUDA_NVRTC_H_
#define ISOMER_RUNTIME_CUDA_NVRTC_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// Ok if there is an NVRTC. Unavailable, with what was looked for and where, if there is none.
absl::Status HasNvrtc();
// "13.0". REQUIRES: HasNvrtc().
std::string NvrtcVersion();

// The cubin of CUDA C++ text for GPUs of an architecture, such as "sm_90". Errors: Unavailable, as
// above; InvalidArgument with the compiler's first messages: of the text, or of the architecture.
absl::StatusOr<std::string> CompileForGpu(absl::string_view text, absl::string_view architecture);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_NVRTC_H_
