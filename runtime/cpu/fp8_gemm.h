// Products of matrices in 8 bits (pcg/ir/fp8.h), by float32: both operands are copied, each number
// as what it is in 8 bits times its scale, and the copies multiplied.
#ifndef ISOMER_RUNTIME_CPU_FP8_GEMM_H_
#define ISOMER_RUNTIME_CPU_FP8_GEMM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "pcg/ir/fp8.h"
#include "pcg/support/float8.h"
#include "runtime/device/workspace.h"

namespace isomer {

// Which dim of a matrix sums of a product run along.
enum class SumDim { kRows = 0, kColumns = 1 };

// to = what `from`, row-major [rows, columns], is in 8 bits. `scales`: room for two numbers a
// column. A matrix of zeros stays so, and so does one of less than 2^-100 throughout. A NaN makes a
// NaN where it is; an infinity, of all that it shares a scale with.
void RoundToFp8(Float8Format format, Fp8Scaling scaling, SumDim sums, int64_t rows, int64_t columns,
                const float* from, float* to, float* scales);

// What the products of a call are computed by: Gemm (gemm.h), in 8 bits if the call is.
class CallGemm {
 public:
  // For c[m,n] = a[m,k] b[k,n] and the gradients of a and b.
  CallGemm(const Operator& op, int64_t m, int64_t n, int64_t k, WorkspacePlan* workspace);

  // c = op(a) op(b) + beta * c. `a_format`, `b_format`: of the operands, if they are rounded.
  absl::Status operator()(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                          const float* a, const float* b, float beta, float* c, char* workspace,
                          Float8Format a_format = Float8Format::kE4M3,
                          Float8Format b_format = Float8Format::kE4M3) const;

 private:
  Fp8Scaling scaling_;
  Place<float> larger_, smaller_, scales_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_FP8_GEMM_H_
