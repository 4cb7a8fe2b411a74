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

// Whose formula is Adam's: LAMB's but for a factor that is found before, and Muon's of weights that
// are no matrices.
bool IsAdams(OptimizerKind kind) {
  return kind == OptimizerKind::kAdam || kind == OptimizerKind::kLamb ||
         kind == OptimizerKind::kMuon;
}

}  // namespace

UpdateFactors FactorsOf(const UpdateStep& step) {
  const auto& [optimizer, settings, decays] = step.optimizer;
  const double t = static_cast<double>(step.number), rate = step.learning_rate;
  UpdateFactors factors = {.rate = rate, .scale = step.gradient_scale};
  if (optimizer == OptimizerKind::kSgd) {
    factors = {.rate = rate * step.gradient_scale};
  } else if (IsAdams(optimizer)) {
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
    case OptimizerKind::kLamb:
    case OptimizerKind::kMuon:
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

LambSquares SquaresOfLamb(const UpdateRule& rule, const UpdateFactors& at_rate_one,
                          const Gradient& gradient, int64_t count, const float* weights,
                          absl::Span<float* const> states) {
  const OptimizerSettings& settings = rule.settings;
  const double decay = rule.decays ? 1 - at_rate_one.shrink : 0;
  const float *mean = states[0], *square = states[1];
  LambSquares sums;
  WithFloatType(gradient.dtype, [&](auto element) {
    const auto* g = static_cast<const decltype(element)*>(gradient.data);
    for (int64_t i = 0; i < count; ++i) {
      const double x = at_rate_one.scale * static_cast<float>(g[i]);
      const double m = settings.beta1 * mean[i] + (1 - settings.beta1) * x;
      const double v = settings.beta2 * square[i] + (1 - settings.beta2) * x * x;
      const double step =
          at_rate_one.rate * m / (std::sqrt(v) * at_rate_one.correction + settings.epsilon) +
          decay * weights[i];
      sums.weights += static_cast<double>(weights[i]) * weights[i];
      sums.steps += step * step;
    }
  });
  return sums;
}

void AdvanceMomentum(const UpdateRule& rule, const UpdateFactors& factors, const Gradient& gradient,
                     int64_t count, float* momentum, float* direction) {
  const auto f = static_cast<float>(rule.settings.momentum);
  const auto c = static_cast<float>(1 - rule.settings.momentum);
  const auto scale = static_cast<float>(factors.scale);
  const bool nesterov = rule.settings.nesterov;
  WithFloatType(gradient.dtype, [&](auto element) {
    const auto* g = static_cast<const decltype(element)*>(gradient.data);
    ForEachIndex(count, [=](int64_t i) {
      const float x = scale * static_cast<float>(g[i]);
      momentum[i] = f * momentum[i] + c * x;
      direction[i] = nesterov ? f * momentum[i] + c * x : momentum[i];
    });
  });
}

void AverageWeights(double rate, int64_t count, const float* weights, float* averages) {
  if (rate == 0) return;
  const auto r = static_cast<float>(rate);
  ForEachIndex(count, [=](int64_t i) {
    averages[i] = r == 1 ? weights[i] : averages[i] + r * (weights[i] - averages[i]);
  });
}

void SwapWeights(int64_t count, const float* weights, float* updated, float* averages,
                 const LowWeights& low) {
  ForEachIndex(count, [=](int64_t i) {
    const float average = averages[i];
    averages[i] = weights[i];
    updated[i] = average;
  });
  if (low.data == nullptr) return;
  ConvertElements(DataType::kFloat32, updated, count, low.dtype, low.data);
}

}  // namespace isomer
