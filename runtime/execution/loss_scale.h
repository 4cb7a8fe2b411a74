// By what the loss is multiplied before its gradient is taken in float16, so that small gradients
// are not lost below its smallest number and large ones not beyond its largest: as large as goes,
// found by trying (Micikevicius et al., "Mixed Precision Training", 2018, section 3.2). A step in
// which a gradient is not finite changes nothing, and halves the scale; so many in a row that are
// double it.
#ifndef ISOMER_RUNTIME_EXECUTION_LOSS_SCALE_H_
#define ISOMER_RUNTIME_EXECUTION_LOSS_SCALE_H_

#include <algorithm>
#include <cstdint>

namespace isomer {

class DynamicLossScale {
 public:
  // As PyTorch's torch.amp.GradScaler begins and grows.
  static constexpr double kFirst = 65536, kLargest = 0x1p24, kLeast = 0x1p-24;
  static constexpr int64_t kStepsToGrow = 2000;

  explicit DynamicLossScale(double first = kFirst, int64_t in_a_row = 0, int64_t skipped = 0)
      : value_(first), in_a_row_(in_a_row), skipped_(skipped) {}

  double value() const { return value_; }
  int64_t skipped() const { return skipped_; }
  // Steps since it was changed or a step was skipped.
  int64_t in_a_row() const { return in_a_row_; }
  // Of the step that was taken with value(): whether all gradients were finite.
  void StepWas(bool finite) {
    if (!finite) {
      ++skipped_;
      in_a_row_ = 0;
      value_ = std::max(value_ / 2, kLeast);
    } else if (++in_a_row_ == kStepsToGrow) {
      in_a_row_ = 0;
      value_ = std::min(value_ * 2, kLargest);
    }
  }

 private:
  double value_;
  int64_t in_a_row_, skipped_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_LOSS_SCALE_H_
