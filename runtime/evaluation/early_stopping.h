#ifndef ISOMER_RUNTIME_EVALUATION_EARLY_STOPPING_H_
#define ISOMER_RUNTIME_EVALUATION_EARLY_STOPPING_H_

#include <cstdint>

namespace isomer {

// Which evaluation was the best so far, and whether those that followed are reason to stop
// (Prechelt, "Early Stopping - But When?", 1998). A value that is no number is never the best.
class EarlyStopping {
 public:
  struct State {
    double best = 0;
    int64_t best_step = -1;      // -1: there was none
    int64_t without_better = 0;  // evaluations since
  };

  // `patience`: so many evaluations without a better one end the training; 0: none do.
  EarlyStopping(int64_t patience, bool more_is_better)
      : patience_(patience), more_is_better_(more_is_better) {}

  // After `step` steps; whether it is the best so far.
  bool Add(int64_t step, double value) {
    const bool is_better =
        value == value &&
        (state_.best_step < 0 || (more_is_better_ ? value > state_.best : value < state_.best));
    if (is_better) {
      state_ = {value, step, 0};
    } else {
      ++state_.without_better;
    }
    return is_better;
  }
  bool ShouldStop() const { return patience_ > 0 && state_.without_better >= patience_; }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  const int64_t patience_;
  const bool more_is_better_;
  State state_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EVALUATION_EARLY_STOPPING_H_
