// GatherMatMul: the rows of each matrix are put together, for one product a matrix.
#include <algorithm>
#include <numeric>
#include <vector>

#include "pcg/support/status_macros.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/index_range.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

// Rows in the order of the matrices that they are multiplied by.
struct Groups {
  std::vector<int64_t> rows;
  std::vector<int64_t> begin;  // per matrix, and the end: places in `rows`

  // `matrix`: per row; -1: of another task.
  Groups(const std::vector<int64_t>& matrix, int64_t matrices) : begin(matrices + 1, 0) {
    for (int64_t m : matrix) {
      if (m >= 0) ++begin[m + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    rows.resize(begin.back());
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (size_t row = 0; row < matrix.size(); ++row) {
      if (matrix[row] >= 0) rows[next[matrix[row]]++] = static_cast<int64_t>(row);
    }
  }

  void Gather(const float* from, int64_t width, float* gathered) const {
    for (size_t r = 0; r < rows.size(); ++r) {
      std::copy_n(from + rows[r] * width, width, gathered + r * width);
    }
  }
  // `to`: `all` rows; those of other tasks are zero.
  void Scatter(const float* gathered, int64_t width, int64_t all, float* to) const {
    std::fill_n(to, all * width, 0.0f);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::copy_n(gathered + r * width, width, to + rows[r] * width);
    }
  }
};

}  // namespace

KernelFunction GatherMatMulKernel(const KernelCall& call) {
  const IndexLimits range(call, 1, 0, 2);
  const int64_t matrices = call.operands[1].shape[0], k = call.operands[1].shape[1],
                n = call.operands[1].shape[2], all = call.operands[2].Volume();
  WorkspacePlan plan;
  const auto rows_in = plan.Add<float>(all * k), rows_out = plan.Add<float>(all * n);
  if (!call.gradient) {
    return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) -> absl::Status {
              ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[2]));
              const Groups groups(indices, matrices);
              float *x = rows_in.In(workspace), *y = rows_out.In(workspace);
              groups.Gather(Floats(reads[0]), k, x);
              for (int64_t e = 0; e < matrices; ++e) {
                const int64_t at = groups.begin[e], m = groups.begin[e + 1] - at;
                if (m == 0) continue;
                ISOMER_RETURN_IF_ERROR(Gemm(false, false, m, n, k, 1, x + at * k,
                                            Floats(reads[1]) + e * k * n, 0, y + at * n));
              }
              groups.Scatter(y, n, all, Floats(writes[0]));
              return absl::OkStatus();
            }};
  }
  // dX = dY W^T and dW = X^T dY, of the rows of each matrix.
  const auto gradients_in = plan.Add<float>(call.wanted[0] ? all * k : 0);
  return {
      plan.bytes(), [=](Reads reads, Writes writes, char* workspace) -> absl::Status {
        ISOMER_ASSIGN_OR_RETURN(const std::vector<int64_t> indices, range.Read(reads[2]));
        const Groups groups(indices, matrices);
        float *x = rows_in.In(workspace), *dy = rows_out.In(workspace);
        float *dx = Floats(writes[0]), *dw = Floats(writes[1]),
              *dx_rows = gradients_in.In(workspace);
        groups.Gather(Floats(reads[4]), n, dy);
        if (dw != nullptr) groups.Gather(Floats(reads[0]), k, x);
        for (int64_t e = 0; e < matrices; ++e) {
          const int64_t at = groups.begin[e], m = groups.begin[e + 1] - at;
          float* const dw_e = dw == nullptr ? nullptr : dw + e * k * n;
          if (m == 0) {
            if (dw != nullptr) std::fill_n(dw_e, k * n, 0.0f);
            continue;
          }
          if (dx != nullptr) {
            ISOMER_RETURN_IF_ERROR(Gemm(false, true, m, k, n, 1, dy + at * n,
                                        Floats(reads[1]) + e * k * n, 0, dx_rows + at * k));
          }
          if (dw != nullptr) {
            ISOMER_RETURN_IF_ERROR(Gemm(true, false, k, n, m, 1, x + at * k, dy + at * n, 0, dw_e));
          }
        }
        if (dx != nullptr) groups.Scatter(dx_rows, k, all, dx);
        return absl::OkStatus();
      }};
}

}  // namespace isomer
