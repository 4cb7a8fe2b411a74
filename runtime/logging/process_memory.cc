#include "runtime/logging/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "pcg/support/file.h"

namespace isomer {

int64_t ResidentBytes() {
  long long total = 0, resident = 0;  // NOLINT: what sscanf takes
  const std::string pages = ReadFile("/proc/self/statm").value_or("");
  if (std::sscanf(pages.c_str(), "%lld %lld", &total, &resident) != 2) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t MostResidentBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace isomer
