#ifndef ISOMER_RUNTIME_DEVICE_STATISTICS_H_
#define ISOMER_RUNTIME_DEVICE_STATISTICS_H_

#include <algorithm>
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

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_STATISTICS_H_
