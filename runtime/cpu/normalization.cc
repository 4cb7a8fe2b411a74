// LayerNorm, RmsNorm.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels.h"

namespace isomer {
namespace {

struct Moments {
  float mean, inverse_deviation;
};

Moments MomentsOf(const float* x, int64_t size, float epsilon) {
  double sum = 0, squares = 0;
  for (int64_t h = 0; h < size; ++h) sum += x[h];
  const float mean = static_cast<float>(sum / static_cast<double>(size));
  for (int64_t h = 0; h < size; ++h) squares += (x[h] - mean) * (x[h] - mean);
  const double variance = squares / static_cast<double>(size);
  return {mean, static_cast<float>(1 / std::sqrt(variance + epsilon))};
}

// With xhat = (x - mean) * r and q = g * gamma:
//   dgamma += g xhat;  dbeta += g;  dx = r (q - mean(q) - xhat mean(q xhat))
void LayerNormGradientRow(const float* x, const float* gamma, const float* g, int64_t size,
                          float epsilon, float* dx, float* dgamma, float* dbeta) {
  const auto [mean, r] = MomentsOf(x, size, epsilon);
  double sum_q = 0, sum_qx = 0;
  for (int64_t h = 0; h < size; ++h) {
    const float xhat = (x[h] - mean) * r, q = g[h] * gamma[h];
    sum_q += q;
    sum_qx += q * xhat;
    if (dgamma != nullptr) dgamma[h] += g[h] * xhat;
    if (dbeta != nullptr) dbeta[h] += g[h];
  }
  if (dx == nullptr) return;
  const float mean_q = static_cast<float>(sum_q / static_cast<double>(size));
  const float mean_qx = static_cast<float>(sum_qx / static_cast<double>(size));
  for (int64_t h = 0; h < size; ++h) {
    dx[h] = r * (g[h] * gamma[h] - mean_q - (x[h] - mean) * r * mean_qx);
  }
}

}  // namespace

KernelFunction LayerNormKernel(const KernelCall& call) {
  const int64_t size = call.operands[0].shape.back();
  const int64_t rows = call.operands[0].Volume() / size;
  const float epsilon = static_cast<float>(call.op.Number("epsilon"));
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      const float *gamma = Floats(reads[1]), *beta = Floats(reads[2]);
      for (int64_t r = 0; r < rows; ++r) {
        const float* x = Floats(reads[0]) + r * size;
        float* y = Floats(writes[0]) + r * size;
        const auto [mean, inverse] = MomentsOf(x, size, epsilon);
        for (int64_t h = 0; h < size; ++h) y[h] = (x[h] - mean) * inverse * gamma[h] + beta[h];
      }
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    float *dx = Floats(writes[0]), *dgamma = Floats(writes[1]), *dbeta = Floats(writes[2]);
    if (dgamma != nullptr) std::fill(dgamma, dgamma + size, 0.0f);
    if (dbeta != nullptr) std::fill(dbeta, dbeta + size, 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
      LayerNormGradientRow(Floats(reads[0]) + r * size, Floats(reads[1]),
                           Floats(reads[4]) + r * size, size, epsilon,
                           dx == nullptr ? nullptr : dx + r * size, dgamma, dbeta);
    }
    return absl::OkStatus();
  };
}

namespace {

// With r = 1 / sqrt(mean(x^2) + epsilon) and q = g * gamma:
//   dgamma += g x r;  dx = r (q - x r^2 mean(q x))
void RmsNormGradientRow(const float* x, const float* gamma, const float* g, int64_t size, float r,
                        float* dx, float* dgamma) {
  double sum_qx = 0;
  for (int64_t h = 0; h < size; ++h) {
    sum_qx += g[h] * gamma[h] * x[h];
    if (dgamma != nullptr) dgamma[h] += g[h] * x[h] * r;
  }
  if (dx == nullptr) return;
  const float factor = r * r * static_cast<float>(sum_qx / static_cast<double>(size));
  for (int64_t h = 0; h < size; ++h) dx[h] = r * (g[h] * gamma[h] - x[h] * factor);
}

float InverseRootMeanSquare(const float* x, int64_t size, double epsilon) {
  double squares = 0;
  for (int64_t h = 0; h < size; ++h) squares += x[h] * x[h];
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + epsilon));
}

}  // namespace

KernelFunction RmsNormKernel(const KernelCall& call) {
  const int64_t size = call.operands[0].shape.back();
  const int64_t rows = call.operands[0].Volume() / size;
  const double epsilon = call.op.Number("epsilon");
  return [=, gradient = call.gradient](Reads reads, Writes writes) {
    const float* gamma = Floats(reads[1]);
    if (gradient && writes[1] != nullptr) std::fill_n(Floats(writes[1]), size, 0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = Floats(reads[0]) + row * size;
      const float r = InverseRootMeanSquare(x, size, epsilon);
      float* to = writes[0] == nullptr ? nullptr : Floats(writes[0]) + row * size;
      if (gradient) {
        RmsNormGradientRow(x, gamma, Floats(reads[3]) + row * size, size, r, to, Floats(writes[1]));
      } else {
        for (int64_t h = 0; h < size; ++h) to[h] = x[h] * r * gamma[h];
      }
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
