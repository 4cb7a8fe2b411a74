// What this process has used so far.
#ifndef ISOMER_BENCH_RESOURCES_H_
#define ISOMER_BENCH_RESOURCES_H_

#include <sys/resource.h>
#include <time.h>

namespace isomer {

// Of all its threads.
inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The most memory that it had.
inline double PeakGib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

}  // namespace isomer

#endif  // ISOMER_BENCH_RESOURCES_H_
