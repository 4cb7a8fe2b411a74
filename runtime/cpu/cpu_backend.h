#ifndef ISOMER_RUNTIME_CPU_CPU_BACKEND_H_
#define ISOMER_RUNTIME_CPU_CPU_BACKEND_H_

#include <memory>

#include "runtime/device/backend.h"

namespace isomer {

// Kernels from oneDNN and plain loops. `reference`: every kernel is the reference evaluator over
// double, straight from the declaration (slow; for tests and for operators without a kernel).
std::unique_ptr<Backend> MakeCpuBackend(bool reference = false);

// The cpu backend has a kernel for the call, and does not leave it to the reference evaluator.
bool HasCpuKernel(const KernelCall& call);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_CPU_BACKEND_H_
