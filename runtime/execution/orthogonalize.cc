#include "runtime/execution/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pcg/ir/tensor_type.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/gemm.h"
#include "runtime/device/elements.h"

namespace isomer {

absl::Status Orthogonalize(int64_t rows, int64_t columns, float* matrix) {
  constexpr int kIterations = 5;
  constexpr float kA = 3.4445F, kB = -4.775F, kC = 2.0315F;
  constexpr double kLeastNorm = 1e-7;
  const int64_t size = rows * columns;
  const double norm = std::sqrt(SumOfSquares(DataType::kFloat32, matrix, size));
  const auto scale = static_cast<float>(1 / std::max(norm, kLeastNorm));
  std::vector<float> x(matrix, matrix + size), next(size);
  for (float& value : x) value *= scale;
  // The Gram matrix is of the shorter side: X X' X is X (X' X), too.
  const bool of_rows = rows <= columns;
  const int64_t side = std::min(rows, columns);
  std::vector<float> gram(side * side), sum(side * side);
  for (int i = 0; i < kIterations; ++i) {
    ISOMER_RETURN_IF_ERROR(Gemm(!of_rows, of_rows, side, side, std::max(rows, columns), 1, x.data(),
                                x.data(), 0, gram.data()));
    sum = gram;
    ISOMER_RETURN_IF_ERROR(
        Gemm(false, false, side, side, side, kC, gram.data(), gram.data(), kB, sum.data()));
    next = x;
    ISOMER_RETURN_IF_ERROR(
        of_rows
            ? Gemm(false, false, rows, columns, rows, 1, sum.data(), x.data(), kA, next.data())
            : Gemm(false, false, rows, columns, columns, 1, x.data(), sum.data(), kA, next.data()));
    x.swap(next);
  }
  std::copy(x.begin(), x.end(), matrix);
  return absl::OkStatus();
}

}  // namespace isomer
