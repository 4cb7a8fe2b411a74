// The learning rate of every step: a pure function of the step's number, so that a run which goes
// on where another ended takes the same steps.
//
// With the peak p, warm-up steps W, the step D at which a decay is over, and the final fraction f,
// a step s = 0, 1, .. has the rate
//
//   warm-up, s < W   p (s + 1) / W
//   constant         p
//   linear           p (1 + (f - 1) x)                       x = (s - W) / (D - W), at most 1
//   cosine           p (f + (1 - f) (1 + cos(pi x)) / 2)
//   inverse_sqrt     p sqrt(max(W, 1) / (s + 1))
//
// The warm-up is torch.optim.lr_scheduler.LinearLR(start_factor=1/W, total_iters=W-1), of Goyal et
// al., "Accurate, Large Minibatch SGD" (2017); what follows, joined by SequentialLR at W, is
// LinearLR(1, f, D-W) and CosineAnnealingLR(D-W, f p), of Loshchilov and Hutter, "SGDR" (2017).
// Steps behind D stay at f p, where CosineAnnealingLR would rise again. inverse_sqrt is that of
// Vaswani et al., "Attention Is All You Need" (2017), equation 3, with p for its largest rate.
#ifndef ISOMER_RUNTIME_EXECUTION_LEARNING_RATE_H_
#define ISOMER_RUNTIME_EXECUTION_LEARNING_RATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

class LearningRate {
 public:
  enum class Shape { kConstant, kLinear, kCosine, kInverseSqrt, kFile };
  struct Options {
    Shape shape = Shape::kConstant;
    double peak = 0.1;
    int64_t warmup_steps = 0;
    int64_t decay_steps = 0;  // 0: all steps of the run
    double final_rate = 0;    // of the peak
  };

  // "constant", "linear", "cosine", "inverse_sqrt".
  static std::vector<std::string> Names();

  // A constant one.
  LearningRate(double rate) : options_{.peak = rate} {}  // NOLINT: a rate is one for every step
  // The error names the flag: a rate that is negative or not finite, or steps that are.
  static absl::StatusOr<LearningRate> Make(const Options& options);
  // Of a file: lines "STEP RATE", the first step being 1, in ascending order; in between rates are
  // linear, before the first line as there, behind the last as there. What follows a # is a
  // comment. The error names the line.
  static absl::StatusOr<LearningRate> FromFile(const std::string& path);
  static absl::StatusOr<LearningRate> FromText(absl::string_view text);

  // For a run that ends behind step `steps`, where a decay is over unless it was said otherwise.
  // The error: the warm-up is no shorter than that.
  absl::Status SetSteps(int64_t steps);

  // Of the step `step`, from 0. REQUIRES: SetSteps, of what decays, unless decay_steps were given.
  double At(int64_t step) const;

 private:
  LearningRate() = default;
  bool decays() const {
    return options_.shape == Shape::kLinear || options_.shape == Shape::kCosine;
  }
  double FromPoints(double step) const;

  Options options_;
  std::vector<std::pair<int64_t, double>> points_;  // of a file: (step from 0, rate)
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_LEARNING_RATE_H_
