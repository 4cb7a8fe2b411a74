// Linear: a matrix product, a bias and an activation.
#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"
#include "runtime/cpu/fp8_gemm.h"
#include "runtime/cpu/kernels.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

// The kernel of the activation of a Linear on its output; null: none.
KernelFunction ActivationOf(const KernelCall& call, bool gradient) {
  const int64_t activation = call.op.Int("activation");
  if (activation == 0) return nullptr;
  KernelCall unary;
  unary.op = kActivationsOfLinear[activation - 1];
  unary.operands = unary.outputs = call.outputs;
  unary.dtypes = unary.output_dtypes = {DataType::kFloat32};
  unary.gradient = gradient;
  return UnaryKernel(unary);
}

struct LinearShape {
  int64_t m, n, k;
  bool has_bias;
  std::array<float, 3> keeps = {};  // how much is left of what is in the gradients' buffers

  explicit LinearShape(const KernelCall& call)
      : m(call.outputs[0].Volume() / call.operands[1].shape[1]),
        n(call.operands[1].shape[1]),
        k(call.operands[1].shape[0]),
        has_bias(call.operands.size() == 3) {
    for (size_t o = 0; o < call.operands.size(); ++o) keeps[o] = call.Adds(o) ? 1 : 0;
  }

  // z = x w + b
  absl::Status PreActivation(const CallGemm& gemm, Reads reads, float* z, char* workspace) const {
    if (has_bias) {
      const float* bias = Floats(reads[2]);
      for (int64_t row = 0; row < m; ++row) std::copy_n(bias, n, z + row * n);
    }
    return gemm(false, false, m, n, k, Floats(reads[0]), Floats(reads[1]), has_bias ? 1 : 0, z,
                workspace);
  }
};

// dx = dz w^T;  dw = x^T dz;  db = the sum of the rows of dz
absl::Status LinearGradient(const LinearShape& s, const CallGemm& gemm, const float* dz,
                            Reads reads, Writes writes, char* workspace) {
  if (writes[0] != nullptr) {
    ISOMER_RETURN_IF_ERROR(gemm(false, true, s.m, s.k, s.n, dz, Floats(reads[1]), s.keeps[0],
                                Floats(writes[0]), workspace, Float8Format::kE5M2,
                                Float8Format::kE4M3));
  }
  if (writes[1] != nullptr) {
    ISOMER_RETURN_IF_ERROR(gemm(true, false, s.k, s.n, s.m, Floats(reads[0]), dz, s.keeps[1],
                                Floats(writes[1]), workspace, Float8Format::kE4M3,
                                Float8Format::kE5M2));
  }
  if (!s.has_bias || writes[2] == nullptr) return absl::OkStatus();
  float* db = Floats(writes[2]);
  if (s.keeps[2] == 0) std::fill_n(db, s.n, 0.0f);
  for (int64_t row = 0; row < s.m; ++row) {
    for (int64_t j = 0; j < s.n; ++j) db[j] += dz[row * s.n + j];
  }
  return absl::OkStatus();
}

}  // namespace

KernelFunction LinearKernel(const KernelCall& call) {
  const LinearShape s(call);
  WorkspacePlan plan;
  const CallGemm gemm(call.op, s.m, s.n, s.k, &plan);
  const KernelFunction activation = ActivationOf(call, false);
  if (!call.gradient) {
    return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) -> absl::Status {
              void* z = writes.back();  // saved, or what becomes the result
              ISOMER_RETURN_IF_ERROR(s.PreActivation(gemm, reads, Floats(z), workspace));
              return activation == nullptr ? absl::OkStatus() : activation({z}, {writes[0]});
            }};
  }
  const KernelFunction derivative = ActivationOf(call, true);
  const int bias = s.has_bias ? 1 : 0;
  if (activation == nullptr) {
    return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
              const float* dz = Floats(reads[3 + bias]);
              return LinearGradient(s, gemm, dz, reads, writes, workspace);
            }};
  }
  // The derivative takes the value after the activation, or the one before it, which was saved.
  const auto gradient = plan.Add<float>(s.m * s.n);
  const bool finds = call.saved.has_value();
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) -> absl::Status {
            float* dz = gradient.In(workspace);
            const void* z = finds ? reads[4 + bias] : nullptr;
            ISOMER_RETURN_IF_ERROR(derivative({z, reads[2 + bias], reads[3 + bias]}, {dz}));
            return LinearGradient(s, gemm, dz, reads, writes, workspace);
          }};
}

}  // namespace isomer
