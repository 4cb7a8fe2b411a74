// MatMul by oneDNN's GEMM, one for each matrix of the batch, or one for all of it where the second
// operand is shared.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "dnnl.h"
#include "runtime/cpu/fp8_gemm.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/matmul_batches.h"

namespace isomer {
namespace {

// What is added to is read in blocks of rows, page by page, and where that takes longer than the
// sums themselves, memory is the faster the more it is read in its order. By measurement of
// products of 650 x 20 by 20 x 2600 that are added up over time steps: 890 us, and 490 so.
constexpr int64_t kShortSums = 128;
constexpr int64_t kNear = int64_t{1} << 16;  // floats

void BringNear(const float* numbers, int64_t count) {
  constexpr int64_t kLine = 16;
  float sum = 0;
  for (int64_t i = 0; i < count; i += kLine) sum += numbers[i];
  // Not to be optimised away.
  volatile float read = sum;
  static_cast<void>(read);
}

}  // namespace

absl::Status Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float* a, const float* b, float beta, float* c) {
  if (beta != 0 && k <= kShortSums && m * n > kNear) BringNear(c, m * n);
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a,
                 transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("oneDNN's sgemm failed with status ", status));
}

namespace {

struct MatMulShape {
  int64_t m, n, k;
  // Offsets of the matrices of each batch element; operands may share theirs.
  std::vector<int64_t> a, b, c;
};

MatMulShape ShapeOf(const KernelCall& call) {
  const MatMulBatches batches = BatchesOf(call);
  MatMulShape s{.m = batches.m, .n = batches.n, .k = batches.k, .a = {}, .b = {}, .c = {}};
  for (const MatMulBatches::Run& run : batches.runs) {
    for (int64_t i = 0; i < run.count; ++i) {
      s.a.push_back(run.a + i * run.a_stride);
      s.b.push_back(run.b + i * run.b_stride);
      s.c.push_back(run.c + i * run.c_stride);
    }
  }
  return s;
}

}  // namespace

KernelFunction MatMulKernel(const KernelCall& call) {
  const MatMulShape s = ShapeOf(call);
  WorkspacePlan plan;
  const CallGemm gemm(call.op, s.m, s.n, s.k, &plan);
  if (!call.gradient) {
    return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
              for (size_t i = 0; i < s.c.size(); ++i) {
                absl::Status status =
                    gemm(false, false, s.m, s.n, s.k, Floats(reads[0]) + s.a[i],
                         Floats(reads[1]) + s.b[i], 0, Floats(writes[0]) + s.c[i], workspace);
                if (!status.ok()) return status;
              }
              return absl::OkStatus();
            }};
  }
  // dA = dC B^T and dB = A^T dC, summed over the batch elements that share a matrix.
  const bool is_one = s.c.size() == 1, adds_a = call.Adds(0), adds_b = call.Adds(1);
  const float keep_a = is_one && !adds_a ? 0 : 1, keep_b = is_one && !adds_b ? 0 : 1;
  const int64_t clear_a = keep_a == 0 || adds_a ? 0 : call.operands[0].Volume();
  const int64_t clear_b = keep_b == 0 || adds_b ? 0 : call.operands[1].Volume();
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            const float *a = Floats(reads[0]), *b = Floats(reads[1]), *dc = Floats(reads[3]);
            float *da = Floats(writes[0]), *db = Floats(writes[1]);
            if (da != nullptr) std::fill_n(da, clear_a, 0.0f);
            if (db != nullptr) std::fill_n(db, clear_b, 0.0f);
            for (size_t i = 0; i < s.c.size(); ++i) {
              absl::Status status;
              if (da != nullptr) {
                status = gemm(false, true, s.m, s.k, s.n, dc + s.c[i], b + s.b[i], keep_a,
                              da + s.a[i], workspace, Float8Format::kE5M2, Float8Format::kE4M3);
              }
              if (db != nullptr && status.ok()) {
                status = gemm(true, false, s.k, s.n, s.m, a + s.a[i], dc + s.c[i], keep_b,
                              db + s.b[i], workspace, Float8Format::kE4M3, Float8Format::kE5M2);
              }
              if (!status.ok()) return status;
            }
            return absl::OkStatus();
          }};
}

}  // namespace isomer
