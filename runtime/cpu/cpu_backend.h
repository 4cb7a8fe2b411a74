#ifndef ISOMER_RUNTIME_CPU_CPU_BACKEND_H_
#define ISOMER_RUNTIME_CPU_CPU_BACKEND_H_

#include "runtime/backend.h"

namespace isomer {

// The cpu backend has a kernel for the call, and does not leave it to the reference evaluator.
bool HasCpuKernel(const KernelCall& call);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_CPU_BACKEND_H_
