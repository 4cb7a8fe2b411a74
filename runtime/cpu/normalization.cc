// LayerNorm, RmsNorm.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"

namespace isomer {
namespace {

// Of a row; saved so.
struct Moments {
  float mean, inverse_deviation;
};

Moments MomentsOf(const float* x, int64_t size, float epsilon) {
  const float mean = static_cast<float>(LineSum(x, size) / static_cast<double>(size));
  const double variance =
      LineSums<1>(
          size, [=](int64_t h) { return std::array<float, 1>{(x[h] - mean) * (x[h] - mean)}; })[0] /
      static_cast<double>(size);
  return {mean, static_cast<float>(1 / std::sqrt(variance + epsilon))};
}

// With xhat = (x - mean) * r and q = g * gamma:
//   dgamma += g xhat;  dbeta += g;  dx = r (q - mean(q) - xhat mean(q xhat))
void LayerNormGradientRow(const Moments& moments, const float* x, const float* gamma,
                          const float* g, int64_t size, float* dx, float* dgamma, float* dbeta) {
  const float mean = moments.mean, r = moments.inverse_deviation;
  if (dgamma != nullptr) {
    Apply([=](float sum, float g, float x) { return sum + g * ((x - mean) * r); }, size, dgamma,
          dgamma, g, x);
  }
  if (dbeta != nullptr) {
    Apply([](float sum, float g) { return sum + g; }, size, dbeta, dbeta, g);
  }
  if (dx == nullptr) return;
  const auto [sum_q, sum_qx] = LineSums<2>(size, [=](int64_t h) {
    const float q = g[h] * gamma[h];
    return std::array<float, 2>{q, q * ((x[h] - mean) * r)};
  });
  const float mean_q = static_cast<float>(sum_q / static_cast<double>(size));
  const float mean_qx = static_cast<float>(sum_qx / static_cast<double>(size));
  Apply([=](float x, float g,
            float gamma) { return r * (g * gamma - mean_q - (x - mean) * r * mean_qx); },
        size, dx, x, g, gamma);
}

}  // namespace

KernelFunction LayerNormKernel(const KernelCall& call) {
  const int64_t size = call.operands[0].shape.back();
  const int64_t rows = call.operands[0].Volume() / size;
  const float epsilon = static_cast<float>(call.op.Number("epsilon"));
  if (!call.gradient) {
    return [=, saves = call.saved.has_value()](Reads reads, Writes writes) {
      const float *gamma = Floats(reads[1]), *beta = Floats(reads[2]);
      auto* saved = saves ? static_cast<Moments*>(writes[1]) : nullptr;
      for (int64_t r = 0; r < rows; ++r) {
        const float* x = Floats(reads[0]) + r * size;
        float* y = Floats(writes[0]) + r * size;
        const Moments moments = MomentsOf(x, size, epsilon);
        if (saved != nullptr) saved[r] = moments;
        Apply(
            [=](float x, float gamma, float beta) {
              return (x - moments.mean) * moments.inverse_deviation * gamma + beta;
            },
            size, y, x, gamma, beta);
      }
      return absl::OkStatus();
    };
  }
  return [=](Reads reads, Writes writes) {
    float *dx = Floats(writes[0]), *dgamma = Floats(writes[1]), *dbeta = Floats(writes[2]);
    const auto* saved = static_cast<const Moments*>(reads[5]);
    if (dgamma != nullptr) std::fill(dgamma, dgamma + size, 0.0f);
    if (dbeta != nullptr) std::fill(dbeta, dbeta + size, 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
      LayerNormGradientRow(saved[r], Floats(reads[0]) + r * size, Floats(reads[1]),
                           Floats(reads[4]) + r * size, size,
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
  if (dgamma != nullptr) {
    Apply([=](float sum, float g, float x) { return sum + g * x * r; }, size, dgamma, dgamma, g, x);
  }
  if (dx == nullptr) return;
  const double sum_qx =
      LineSums<1>(size, [=](int64_t h) { return std::array<float, 1>{g[h] * gamma[h] * x[h]}; })[0];
  const float factor = r * r * static_cast<float>(sum_qx / static_cast<double>(size));
  Apply([=](float x, float g, float gamma) { return r * (g * gamma - x * factor); }, size, dx, x, g,
        gamma);
}

float InverseRootMeanSquare(const float* x, int64_t size, double epsilon) {
  const double squares =
      LineSums<1>(size, [=](int64_t h) { return std::array<float, 1>{x[h] * x[h]}; })[0];
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + epsilon));
}

}  // namespace

KernelFunction RmsNormKernel(const KernelCall& call) {
  const int64_t size = call.operands[0].shape.back();
  const int64_t rows = call.operands[0].Volume() / size;
  const double epsilon = call.op.Number("epsilon");
  return [=, gradient = call.gradient, saves = call.saved.has_value()](Reads reads, Writes writes) {
    const float* gamma = Floats(reads[1]);
    const float* found = gradient ? Floats(reads[4]) : nullptr;
    float* saved = !gradient && saves ? Floats(writes[1]) : nullptr;
    if (gradient && writes[1] != nullptr) std::fill_n(Floats(writes[1]), size, 0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = Floats(reads[0]) + row * size;
      const float r = gradient ? found[row] : InverseRootMeanSquare(x, size, epsilon);
      if (saved != nullptr) saved[row] = r;
      float* to = writes[0] == nullptr ? nullptr : Floats(writes[0]) + row * size;
      if (gradient) {
        RmsNormGradientRow(x, gamma, Floats(reads[3]) + row * size, size, r, to, Floats(writes[1]));
      } else {
        Apply([r](float x, float gamma) { return x * r * gamma; }, size, to, x, gamma);
      }
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
