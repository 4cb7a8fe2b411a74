// The kernels of the cpu backend, by family. Each function returns the kernel of a call, forward or
// gradient; the buffers are those of Kernel::Run.
#ifndef ISOMER_RUNTIME_CPU_KERNELS_H_
#define ISOMER_RUNTIME_CPU_KERNELS_H_

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/backend.h"

namespace isomer {

using Reads = absl::Span<const void* const>;
using Writes = absl::Span<void* const>;
using KernelFunction = std::function<absl::Status(Reads, Writes)>;

KernelFunction MatMulKernel(const KernelCall& call);
KernelFunction Conv2dKernel(const KernelCall& call);  // oneDNN
KernelFunction BinaryKernel(const KernelCall& call);  // Add, Sub, Mul, Div
KernelFunction UnaryKernel(const KernelCall& call);   // Scale, Relu, Gelu, ..
KernelFunction SoftmaxKernel(const KernelCall& call);
KernelFunction LayerNormKernel(const KernelCall& call);
KernelFunction BatchNormKernel(const KernelCall& call);
KernelFunction PoolKernel(const KernelCall& call);       // MaxPool, AvgPool
KernelFunction ReductionKernel(const KernelCall& call);  // ReduceSum, ReduceMean
KernelFunction TransposeKernel(const KernelCall& call);
KernelFunction ReshapeKernel(const KernelCall& call);
KernelFunction ConcatKernel(const KernelCall& call);
KernelFunction SplitKernel(const KernelCall& call);
KernelFunction EmbeddingKernel(const KernelCall& call);
KernelFunction CrossEntropyKernel(const KernelCall& call);
KernelFunction MeanSquaredErrorKernel(const KernelCall& call);
// Any declared operator on any data types, by the reference evaluator over double.
KernelFunction ReferenceKernel(const KernelCall& call);

// Typed views of the buffers of a kernel.
inline const float* Floats(const void* data) { return static_cast<const float*>(data); }
inline const int64_t* Indices(const void* data) { return static_cast<const int64_t*>(data); }
inline float* Floats(void* data) { return static_cast<float*>(data); }

inline int64_t Product(absl::Span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}
// The sizes of a box before, at and after an axis.
struct AxisSplit {
  int64_t outer, size, inner;
};
inline AxisSplit SplitAtAxis(const Box& box, int axis) {
  const absl::Span<const int64_t> shape = box.shape;
  return {Product(shape.first(axis)), shape[axis], Product(shape.subspan(axis + 1))};
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_KERNELS_H_
