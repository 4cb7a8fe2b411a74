#ifndef ISOMER_RUNTIME_CPU_MEMORY_ORDER_H_
#define ISOMER_RUNTIME_CPU_MEMORY_ORDER_H_

#include <optional>

#include "runtime/device/backend.h"

namespace isomer {

// A kernel of the kind looks at the layouts of its call.
bool LooksAtLayouts(OpKind kind);

// The call on row-major tensors whose dims are those of `call` in the order in which they lie:
// attributes that name dims name the same ones there. Kernels of calls that do with one dim what
// they do with another need no more. None: there is no such call, or not all operands and results
// have their dims in one order.
std::optional<KernelCall> InMemoryOrder(const KernelCall& call);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_MEMORY_ORDER_H_
