#ifndef ISOMER_RUNTIME_DEVICE_US_SINCE_H_
#define ISOMER_RUNTIME_DEVICE_US_SINCE_H_

#include <chrono>

namespace isomer {

// Microseconds by the clock on the wall.
inline double UsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_US_SINCE_H_
