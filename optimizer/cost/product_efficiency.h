// How fast a GPU multiplies matrices of a shape, relative to large ones.
//
// A kernel computes the result in tiles, one at a time on each multiprocessor. Three things cost:
//   waves   the last round of tiles leaves multiprocessors idle, and tiles over the edge compute
//           nothing (NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave
//           quantization); the sum may be cut in parts that are added up (split-K), which fills a
//           wave
//   tiles   small ones read operands more often (same guide, arithmetic intensity)
//   depth   a tile begins and ends with moves that no product hides
#ifndef ISOMER_OPTIMIZER_COST_PRODUCT_EFFICIENCY_H_
#define ISOMER_OPTIMIZER_COST_PRODUCT_EFFICIENCY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// batch x [m, k] x [k, n].
struct ProductShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  double flops() const;  // 2 batch m n k
};

// In (0, 1]; 1 for devices without `multiprocessors`.
double ProductEfficiency(const DeviceKind& kind, const ProductShape& shape);

// The products of a task of a MatMul or Linear on operands of these types: one forward, or one for
// each wanted gradient of operands 0 and 1 (`wanted` not empty). Empty: of other operators.
std::vector<ProductShape> ProductsOf(const Operator& op, absl::Span<const TensorType> operands,
                                     const std::vector<bool>& wanted);

// Of a task of fused attention, the longest of its call: what share of its arithmetic the kernel
// does (a causal one skips what is masked, of which the last queries have least), over the share of
// the products' rate that it reaches (DeviceKind). Absent: of other operators, or for devices that
// say nothing of it.
std::optional<double> AttentionFactor(const DeviceKind& kind, const Operator& op,
                                      absl::Span<const TensorType> operands, bool is_gradient);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_PRODUCT_EFFICIENCY_H_
