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

// Neither hides what is no number.
inline float SignOf(float x) { return x > 0 ? 1.0F : x < 0 ? -1.0F : x; }

}  // namespace

UpdateFactors FactorsOf(const UpdateStep& step) {
  const auto& [optimizer, settings, decays] = step.optimizer;
  const double t = static_cast<double>(step.number), rate = step.learning_rate;
  UpdateFactors factors = {.rate = rate, .scale = step.gradient_scale};
  if (optimizer == OptimizerKind::kSgd) {
    factors = {.rate = rate * step.gradient_scale};
  } else if (optimizer == OptimizerKind::kAdam) {
    factors.rate /= 1 - std::pow(settings.beta1, t);
    factors.correction = 1 / std::sqrt(1 - std::pow(settings.beta2, t));
  }
  if (TraitsOf(optimizer).decays_weight) {
    factors.shrink = 1 - rate * settings.weight_decay;
  } else {
    factors.pull = settings.weight_decay / step.gradient_scale;
  }
  return factors;
}

void UpdateWeights(const UpdateRule& rule, const UpdateFactors& factors, const Gradient& gradient,
                   int64_t count, const float* weights, float* updated,
                   absl::Span<float* const> states, const LowWeights& low) {
  const float scale = static_cast<float>(factors.scale);
  const float rate = static_cast<float>(factors.rate);
  const float shrink = rule.decays ? static_cast<float>(factors.shrink) : 1;
  const float pull = rule.decays ? static_cast<float>(factors.pull) : 0;
  const OptimizerSettings& settings = rule.settings;
  const float b1 = static_cast<float>(settings.beta1), c1 = static_cast<float>(1 - settings.beta1);
  const float b2 = static_cast<float>(settings.beta2), c2 = static_cast<float>(1 - settings.beta2);
  const float epsilon = static_cast<float>(settings.epsilon);
  // Without decay both are what they were, to the bit.
  const auto update = [&](auto f) {
    ForEachWeight(gradient, count, weights, updated, low,
                  [=](float w, float g, int64_t i) { return f(shrink * w, g + pull * w, i); });
  };
  switch (rule.optimizer) {
    case OptimizerKind::kSgd: {
      return update([=](float w, float g, int64_t) { return w - rate * g; });
    }
    case OptimizerKind::kMomentum: {
      const float factor = static_cast<float>(settings.momentum);
      float* velocity = states[0];
      if (settings.nesterov) {
        return update([=](float w, float g, int64_t i) {
          const float x = scale * g;
          velocity[i] = factor * velocity[i] + x;
          return w - rate * (x + factor * velocity[i]);
        });
      }
      return update([=](float w, float g, int64_t i) {
        velocity[i] = factor * velocity[i] + scale * g;
        return w - rate * velocity[i];
      });
    }
    case OptimizerKind::kAdam: {
      const float correction = static_cast<float>(factors.correction);
      float *mean = states[0], *square = states[1];
      return update([=](float w, float g, int64_t i) {
        const float x = scale * g;
        mean[i] = b1 * mean[i] + c1 * x;
        square[i] = b2 * square[i] + c2 * x * x;
        return w - rate * mean[i] / (std::sqrt(square[i]) * correction + epsilon);
      });
    }
    case OptimizerKind::kLion: {
      float* mean = states[0];
      return update([=](float w, float g, int64_t i) {
        const float x = scale * g;
        const float direction = b1 * mean[i] + c1 * x;
        mean[i] = b2 * mean[i] + c2 * x;
        return w - rate * SignOf(direction);
      });
    }
    case OptimizerKind::kAdagrad: {
      float* sum = states[0];
      return update([=](float w, float g, int64_t i) {
        const float x = scale * g;
        sum[i] = sum[i] + x * x;
        return w - rate * x / (std::sqrt(sum[i]) + epsilon);
      });
    }
  }
}

}  // namespace isomer
