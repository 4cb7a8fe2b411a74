// The kernels of a ScatterElements that replaces elements, such as a row of a cache. What is
// generated from its declaration goes over every element of the result; these over what is
// replaced, where the result lies in the operand's place (pcg/schedule/memory/carries.h).
#ifndef ISOMER_RUNTIME_CUDA_REPLACED_ELEMENTS_H_
#define ISOMER_RUNTIME_CUDA_REPLACED_ELEMENTS_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/device/backend.h"

namespace isomer {

// One that copies the operand, unless the result is in its place, and one with a thread for each
// line of indices along the axis, of which later ones win. `name` as GenerateKernel has it. Absent:
// of other calls, gradients, and layouts that are not row-major.
std::optional<GeneratedKernel> ReplacingKernels(const KernelCall& call, absl::string_view name);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_REPLACED_ELEMENTS_H_
