// Running averages of weights, which are kept beside them and often test better: exponential ones
// (Polyak and Juditsky, 1992, as torch.optim.swa_utils.get_ema_multi_avg_fn has them), or means of
// weights some steps apart (Izmailov et al., "Averaging Weights Leads to Wider Optima and Better
// Generalization", 2018; torch.optim.swa_utils.AveragedModel).
#ifndef ISOMER_RUNTIME_EXECUTION_WEIGHT_AVERAGE_H_
#define ISOMER_RUNTIME_EXECUTION_WEIGHT_AVERAGE_H_

#include <cstdint>

namespace isomer {

struct AverageOptions {
  // Of an exponential average A, which becomes A + (1 - decay) (w - A).
  double decay = 0.999;
  // All weights count alike instead.
  bool is_mean = false;
  // Updates are numbered from 1: the average is of the weights after update `first` and each
  // `every`-th behind it. Before, it is the weights.
  int64_t first = 1, every = 1;

  // How far the average goes towards the weights after this update: 1 is to them.
  double RateOf(int64_t update) const {
    if (update <= first) return 1;
    if ((update - first) % every != 0) return 0;
    const int64_t before = (update - first) / every;
    return is_mean ? 1 / static_cast<double>(before + 1) : 1 - decay;
  }
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_WEIGHT_AVERAGE_H_
