#ifndef ISOMER_RUNTIME_DEVICE_STATISTICS_H_
#define ISOMER_RUNTIME_DEVICE_STATISTICS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace isomer {

struct Spread {
  double median = 0, min = 0, max = 0;
  double lower = 0, upper = 0;  // quartiles
};

// All 0 for no samples.
inline Spread SpreadOf(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  const double median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  return {median, samples.front(), samples.back(), samples[n / 4], samples[n - 1 - n / 4]};
}

// Samples of a long run, in bounded memory: all of them, then every second, every fourth and so on,
// so that those that are kept are spread evenly over all.
class Samples {
 public:
  static constexpr size_t kMost = 4096;

  void Add(double sample) {
    if (count_++ % every_ != 0) return;
    kept_.push_back(sample);
    if (kept_.size() < kMost) return;
    for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    every_ *= 2;
  }
  // How many there were.
  int64_t count() const { return count_; }
  const std::vector<double>& kept() const { return kept_; }

 private:
  std::vector<double> kept_;
  int64_t count_ = 0, every_ = 1;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_STATISTICS_H_
