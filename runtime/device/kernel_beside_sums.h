// Kernels of calls that add to sums, or write in their types, from kernels that do neither.
#ifndef ISOMER_RUNTIME_DEVICE_KERNEL_BESIDE_SUMS_H_
#define ISOMER_RUNTIME_DEVICE_KERNEL_BESIDE_SUMS_H_

#include <memory>

#include "runtime/device/backend.h"

namespace isomer {

// The call that writes all gradients in the types of their operands.
KernelCall WithoutSums(const KernelCall& call);

// The kernel of `call` by `writing`, that of WithoutSums(call): what belongs to a sum is written
// beside it, and added or converted from there.
std::unique_ptr<Kernel> KernelBesideSums(const KernelCall& call, std::unique_ptr<Kernel> writing);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_KERNEL_BESIDE_SUMS_H_
