// Attention by cuDNN: scores stay in a GPU's caches.
#ifndef ISOMER_RUNTIME_CUDA_FUSED_ATTENTION_H_
#define ISOMER_RUNTIME_CUDA_FUSED_ATTENTION_H_

#include <cstdint>

#include "pcg/ir/tensor_type.h"
#include "runtime/cuda/cudnn_graph.h"

namespace isomer {

// Of row-major queries [batch, heads, queries, e], keys [batch, key_heads, keys, e] and values
// [batch, key_heads, keys, f]; the query heads of a key head lie side by side.
struct FusedAttention {
  int64_t batch, heads, key_heads, queries, keys, e, f;
  DataType dtype;  // bfloat16 or float16
  double scale;
  bool causal;  // Query i sees the keys up to i.
  bool gradient;

  int64_t rows() const { return batch * heads * queries; }
};

// What it is given, in this order. Forward: queries, keys, values, results, and the logarithms of
// the sums of the exponentials of each row's scores, float32, [batch, heads, queries]. The
// gradient: queries, keys, values, results, those logarithms, gradients of results; of queries, of
// keys, of values; and room for a number of each row, and for the gradients of queries in float32.
CudnnGraph GraphOf(const Cudnn& cudnn, const FusedAttention& attention);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_FUSED_ATTENTION_H_
