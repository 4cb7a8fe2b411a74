#ifndef ISOMER_RUNTIME_DEVICE_UPDATE_H_
#define ISOMER_RUNTIME_DEVICE_UPDATE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

// By which formulas weights are updated.
struct UpdateRule {
  OptimizerKind optimizer;
  OptimizerSettings settings;
  bool decays = true;  // by the settings' weight_decay; else as if that were 0
  // With the optimizer's own settings.
  UpdateRule(OptimizerKind kind)  // NOLINT: it is one
      : optimizer(kind), settings(TraitsOf(kind).settings) {}
  UpdateRule(OptimizerKind kind, const OptimizerSettings& of_kind)
      : optimizer(kind), settings(of_kind) {}
};

// A step of the optimizer (pcg/ir/weight_update.h has the formulas).
struct UpdateStep {
  UpdateRule optimizer = OptimizerKind::kSgd;
  int64_t number = 1;  // from 1
  double learning_rate = 0;
  double gradient_scale = 1;  // what a gradient is multiplied with first
};

// What the formulas of a step have in common for all weights. Devices have it in their memory, so
// that what they are given to do is the same in every step.
struct UpdateFactors {
  double rate = 0;        // SGD: of gradients as they are; else of what becomes of them
  double correction = 1;  // Adam: of the root of the mean of squares
  double scale = 1;       // else: what a gradient is multiplied with first
  // Of weights that decay: what a weight is multiplied with first, and how much of it is added to
  // its gradient as it is.
  double shrink = 1, pull = 0;
};
UpdateFactors FactorsOf(const UpdateStep& step);

struct Gradient {
  DataType dtype;  // a float type
  const void* data;
};

// The copy of weights in low precision that devices compute with.
struct LowWeights {
  DataType dtype = DataType::kBFloat16;
  void* data = nullptr;  // null: there is none
};

// `updated` := what the step makes of `count` weights, and `low` that, rounded. REQUIRES:
// NumStates(rule.optimizer) states of `count` numbers; `updated` is `weights`, or they do not
// overlap.
void UpdateWeights(const UpdateRule& rule, const UpdateFactors& factors, const Gradient& gradient,
                   int64_t count, const float* weights, float* updated,
                   absl::Span<float* const> states, const LowWeights& low = {});

// LAMB: sums of the squares of weights, and of what a step at rate 1 subtracts of them before it is
// multiplied by their ratio; in double. Changes nothing.
struct LambSquares {
  double weights = 0, steps = 0;
};
LambSquares SquaresOfLamb(const UpdateRule& rule, const UpdateFactors& at_rate_one,
                          const Gradient& gradient, int64_t count, const float* weights,
                          absl::Span<float* const> states);
// Muon: `momentum` takes in the gradient, and `direction` := what of it is to be orthogonalised.
void AdvanceMomentum(const UpdateRule& rule, const UpdateFactors& factors, const Gradient& gradient,
                     int64_t count, float* momentum, float* direction);

// The averages go so far towards the weights: 1 is to them, to the bit.
void AverageWeights(double rate, int64_t count, const float* weights, float* averages);
// `updated` := averages, and `low` that, rounded; averages := `weights`, which `updated` may be.
void SwapWeights(int64_t count, const float* weights, float* updated, float* averages,
                 const LowWeights& low = {});

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_UPDATE_H_
