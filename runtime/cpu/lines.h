// Lines of elements along an axis.
#ifndef ISOMER_RUNTIME_CPU_LINES_H_
#define ISOMER_RUNTIME_CPU_LINES_H_

#include <cstdint>

#include "runtime/cpu/kernels.h"
#include "runtime/device/backend.h"

namespace isomer {

// The attribute `axis`, counted from the front of `rank` dims.
inline int AxisOf(const KernelCall& call, size_t rank) {
  const int64_t axis = call.op.Int("axis");
  return static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// The sizes of operand 0 before, at and after the attribute `axis`.
inline AxisSplit SplitAtItsAxis(const KernelCall& call) {
  return SplitAtAxis(call.operands[0], AxisOf(call, call.operands[0].shape.size()));
}

// Calls f(offset of the first element) for every line along the axis; its elements are split.inner
// apart.
template <typename Function>
void ForEachLine(const AxisSplit& split, Function f) {
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < split.inner; ++i) f(o * split.size * split.inner + i);
  }
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_LINES_H_
