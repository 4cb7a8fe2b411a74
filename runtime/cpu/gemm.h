#ifndef ISOMER_RUNTIME_CPU_GEMM_H_
#define ISOMER_RUNTIME_CPU_GEMM_H_

#include <cstdint>

#include "absl/status/status.h"

namespace isomer {

// Row-major c[m,n] = alpha * op(a) op(b) + beta * c by oneDNN, op a transposition or nothing.
absl::Status Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float* a, const float* b, float beta, float* c);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CPU_GEMM_H_
