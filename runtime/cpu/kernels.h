// The kernels of the cpu backend, by family. Each function returns the kernel of a call, forward or
// gradient; the buffers are those of Kernel::Run. What many networks add up (products of
// matrices, look-ups, elementwise operators) is added to sums (KernelCall::sums), the rest written.
#ifndef ISOMER_RUNTIME_CPU_KERNELS_H_
#define ISOMER_RUNTIME_CPU_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/device/backend.h"

namespace isomer {

using Reads = absl::Span<const void* const>;
using Writes = absl::Span<void* const>;

// A kernel, with the workspace that it needs.
class KernelFunction {
 public:
  using Body = std::function<absl::Status(Reads, Writes, char* workspace)>;
  KernelFunction(std::nullptr_t = nullptr) {}  // NOLINT: there is none
  KernelFunction(int64_t workspace_bytes, Body body)
      : workspace_bytes_(workspace_bytes), body_(std::move(body)) {}
  // Without one.
  template <typename Plain>
  requires std::is_invocable_r_v<absl::Status, Plain, Reads, Writes> KernelFunction(
      Plain body)  // NOLINT
      : KernelFunction(0, [body = std::move(body)](Reads reads, Writes writes, char*) {
          return absl::Status(body(reads, writes));
        }) {}

  int64_t workspace_bytes() const { return workspace_bytes_; }
  absl::Status operator()(Reads reads, Writes writes, char* workspace = nullptr) const {
    return body_(reads, writes, workspace);
  }
  friend bool operator==(const KernelFunction& kernel, std::nullptr_t) {
    return kernel.body_ == nullptr;
  }

 private:
  int64_t workspace_bytes_ = 0;
  Body body_;
};

KernelFunction MatMulKernel(const KernelCall& call);
KernelFunction LinearKernel(const KernelCall& call);
KernelFunction AttentionKernel(const KernelCall& call);
KernelFunction RotaryKernel(const KernelCall& call);
KernelFunction LstmCellKernel(const KernelCall& call);
KernelFunction GruCellKernel(const KernelCall& call);
// Conv1d, Conv2d, Conv3d and ConvTranspose, by oneDNN.
KernelFunction Conv2dKernel(const KernelCall& call);
// Its kernel is a product of matrices.
bool IsPointConvolution(const KernelCall& call);
// One of the next three, or null for other operators. Forward kernels take any data types,
// gradients float32.
KernelFunction ElementwiseKernel(const KernelCall& call);
KernelFunction BinaryKernel(const KernelCall& call);  // Add, Maximum, Less, ..
KernelFunction WhereKernel(const KernelCall& call);
KernelFunction UnaryKernel(const KernelCall& call);  // Scale, Relu, Cast, ..
KernelFunction DropoutKernel(const KernelCall& call);
KernelFunction ZeroGradientKernel(const KernelCall& call);  // of what is constant between jumps
KernelFunction SoftmaxKernel(const KernelCall& call);
KernelFunction LogSoftmaxKernel(const KernelCall& call);
KernelFunction LayerNormKernel(const KernelCall& call);
KernelFunction RmsNormKernel(const KernelCall& call);
KernelFunction GroupNormKernel(const KernelCall& call);
KernelFunction BatchNormKernel(const KernelCall& call);
KernelFunction BatchNormTrainingKernel(const KernelCall& call);
KernelFunction PoolKernel(const KernelCall& call);  // MaxPool, AvgPool
KernelFunction AdaptivePoolKernel(const KernelCall& call);
KernelFunction ReductionKernel(const KernelCall& call);  // ReduceSum, ReduceMax, ..
KernelFunction ArgMaxKernel(const KernelCall& call);     // ArgMax, ArgMin
KernelFunction TopKKernel(const KernelCall& call);
KernelFunction CumSumKernel(const KernelCall& call);
KernelFunction TransposeKernel(const KernelCall& call);
KernelFunction ReshapeKernel(const KernelCall& call);
KernelFunction ConcatKernel(const KernelCall& call);
KernelFunction SplitKernel(const KernelCall& call);
KernelFunction IndexMapKernel(const KernelCall& call);  // Slice, Pad, Expand
KernelFunction TriluKernel(const KernelCall& call);
KernelFunction GatherKernel(const KernelCall& call);  // Gather, Embedding
KernelFunction GatherRowsKernel(const KernelCall& call);
KernelFunction GatherSumKernel(const KernelCall& call);
KernelFunction TopKRoutingKernel(const KernelCall& call);
KernelFunction EmbeddingBagKernel(const KernelCall& call);
KernelFunction GatherMatMulKernel(const KernelCall& call);
KernelFunction GatherElementsKernel(const KernelCall& call);
KernelFunction ScatterElementsKernel(const KernelCall& call);
KernelFunction ReplacedElementsKernel(const KernelCall& call);  // ScatterElements that replaces
KernelFunction OneHotKernel(const KernelCall& call);
KernelFunction CrossEntropyKernel(const KernelCall& call);
KernelFunction MeanSquaredErrorKernel(const KernelCall& call);
KernelFunction BinaryCrossEntropyKernel(const KernelCall& call);
// Any declared operator on any data types, by the reference evaluator over double.
KernelFunction ReferenceKernel(const KernelCall& call);

// Typed views of the buffers of a kernel.
inline const float* Floats(const void* data) { return static_cast<const float*>(data); }
inline const int64_t* Indices(const void* data) { return static_cast<const int64_t*>(data); }
inline float* Floats(void* data) { return static_cast<float*>(data); }

// Calls f with an unsigned integer of so many bytes, for what only moves elements.
template <typename Function>
void WithElementSize(int64_t bytes, Function f) {
  switch (bytes) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    default:
      return f(uint64_t());
  }
}

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
