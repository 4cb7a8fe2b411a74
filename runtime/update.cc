#include "runtime/update.h"

#include <cmath>

#include "runtime/elements.h"

namespace isomer {
namespace {

void UpdateByMomentum(const UpdateStep& step, DataType dtype, const void* gradient, int64_t count,
                      void* weights, float* velocity) {
  const float factor = static_cast<float>(kMomentumFactor);
  const float rate = static_cast<float>(step.learning_rate);
  const float scale = static_cast<float>(step.gradient_scale);
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    const auto* g = static_cast<const Element*>(gradient);
    auto* w = static_cast<Element*>(weights);
    for (int64_t i = 0; i < count; ++i) {
      velocity[i] = factor * velocity[i] + scale * static_cast<float>(g[i]);
      w[i] = ToElement<Element>(static_cast<float>(w[i]) - rate * velocity[i]);
    }
  });
}

void UpdateByAdam(const UpdateStep& step, DataType dtype, const void* gradient, int64_t count,
                  void* weights, float* mean, float* square) {
  const double t = static_cast<double>(step.number);
  const float b1 = static_cast<float>(kAdamBeta1), b2 = static_cast<float>(kAdamBeta2);
  const float c1 = static_cast<float>(1 - kAdamBeta1), c2 = static_cast<float>(1 - kAdamBeta2);
  const float rate = static_cast<float>(step.learning_rate / (1 - std::pow(kAdamBeta1, t)));
  const float correction = static_cast<float>(1 / std::sqrt(1 - std::pow(kAdamBeta2, t)));
  const float epsilon = static_cast<float>(kAdamEpsilon);
  const float scale = static_cast<float>(step.gradient_scale);
  WithElementType(dtype, [&](auto element) {
    using Element = decltype(element);
    const auto* g = static_cast<const Element*>(gradient);
    auto* w = static_cast<Element*>(weights);
    for (int64_t i = 0; i < count; ++i) {
      const float x = scale * static_cast<float>(g[i]);
      mean[i] = b1 * mean[i] + c1 * x;
      square[i] = b2 * square[i] + c2 * x * x;
      const float change = rate * mean[i] / (std::sqrt(square[i]) * correction + epsilon);
      w[i] = ToElement<Element>(static_cast<float>(w[i]) - change);
    }
  });
}

}  // namespace

void UpdateWeights(const UpdateStep& step, DataType dtype, const void* gradient, int64_t count,
                   void* weights, absl::Span<float* const> states) {
  switch (step.optimizer) {
    case OptimizerKind::kSgd:
      return AddScaledElements(dtype, static_cast<float>(-step.learning_rate * step.gradient_scale),
                               gradient, count, weights);
    case OptimizerKind::kMomentum:
      return UpdateByMomentum(step, dtype, gradient, count, weights, states[0]);
    case OptimizerKind::kAdam:
      return UpdateByAdam(step, dtype, gradient, count, weights, states[0], states[1]);
  }
}

}  // namespace isomer
