#include "runtime/device/update.h"

#include <cmath>

#include "runtime/device/elements.h"
#include "runtime/device/vectorised.h"

namespace isomer {
namespace {

// One pass over the weights, their gradient and the states: f(weight, gradient, number) is what a
// weight becomes. What is written where is read, is written after it.
template <typename Function>
void ForEachWeight(const Gradient& gradient, int64_t count, const float* weights, float* updated,
                   const LowWeights& low, Function f) {
  WithFloatType(gradient.dtype, [&](auto element) {
    const auto* g = static_cast<const decltype(element)*>(gradient.data);
    if (low.data == nullptr) {
      ForEachIndex(count,
                   [=](int64_t i) { updated[i] = f(weights[i], static_cast<float>(g[i]), i); });
      return;
    }
    WithFloatType(low.dtype, [&](auto low_element) {
      using Low = decltype(low_element);
      auto* rounded = static_cast<Low*>(low.data);
      ForEachIndex(count, [=](int64_t i) {
        updated[i] = f(weights[i], static_cast<float>(g[i]), i);
        rounded[i] = ToElement<Low>(updated[i]);
      });
    });
  });
}

}  // namespace

UpdateFactors FactorsOf(const UpdateStep& step) {
  const double t = static_cast<double>(step.number);
  switch (step.optimizer) {
    case OptimizerKind::kSgd:
      return {.rate = step.learning_rate * step.gradient_scale};
    case OptimizerKind::kMomentum:
      return {.rate = step.learning_rate, .scale = step.gradient_scale};
    case OptimizerKind::kAdam:
      return {.rate = step.learning_rate / (1 - std::pow(kAdamBeta1, t)),
              .correction = 1 / std::sqrt(1 - std::pow(kAdamBeta2, t)),
              .scale = step.gradient_scale};
  }
  return {};
}

void UpdateWeights(OptimizerKind optimizer, const UpdateFactors& factors, const Gradient& gradient,
                   int64_t count, const float* weights, float* updated,
                   absl::Span<float* const> states, const LowWeights& low) {
  const float scale = static_cast<float>(factors.scale);
  const float rate = static_cast<float>(factors.rate);
  const auto update = [&](auto f) { ForEachWeight(gradient, count, weights, updated, low, f); };
  switch (optimizer) {
    case OptimizerKind::kSgd: {
      return update([=](float w, float g, int64_t) { return w - rate * g; });
    }
    case OptimizerKind::kMomentum: {
      const float factor = static_cast<float>(kMomentumFactor);
      float* velocity = states[0];
      return update([=](float w, float g, int64_t i) {
        velocity[i] = factor * velocity[i] + scale * g;
        return w - rate * velocity[i];
      });
    }
    case OptimizerKind::kAdam: {
      const float b1 = static_cast<float>(kAdamBeta1), b2 = static_cast<float>(kAdamBeta2);
      const float c1 = static_cast<float>(1 - kAdamBeta1), c2 = static_cast<float>(1 - kAdamBeta2);
      const float correction = static_cast<float>(factors.correction);
      const float epsilon = static_cast<float>(kAdamEpsilon);
      float *mean = states[0], *square = states[1];
      return update([=](float w, float g, int64_t i) {
        const float x = scale * g;
        mean[i] = b1 * mean[i] + c1 * x;
        square[i] = b2 * square[i] + c2 * x * x;
        return w - rate * mean[i] / (std::sqrt(square[i]) * correction + epsilon);
      });
    }
  }
}

}  // namespace isomer
