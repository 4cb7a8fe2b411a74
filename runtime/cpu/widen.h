// Kernels of float32 on buffers of lower precision.
#ifndef ISOMER_RUNTIME_CPU_WIDEN_H_
#define ISOMER_RUNTIME_CPU_WIDEN_H_

#include "runtime/cpu/kernels.h"

namespace isomer {

// The call with bfloat16 and float16 as float32, and integers of 32 bits as those of 64.
KernelCall Widened(const KernelCall& call);

// `kernel`, which computes Widened(call), on converted copies of the buffers of `call`.
KernelFunction OnWidenedCopies(const KernelCall& call, KernelFunction kernel);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_WIDEN_H_
