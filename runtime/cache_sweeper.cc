#include "runtime/cache_sweeper.h"

#include <unistd.h>

#include <algorithm>

namespace isomer {

int64_t SecondLevelCacheBytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  constexpr long kUsual = 2 << 20, kMost = 32 << 20;
  return bytes > 0 ? std::min(bytes, kMost) : kUsual;
}

void CacheSweeper::Sweep() {
  constexpr size_t kLine = 64;
  for (size_t i = 0; i < memory_.size(); i += kLine) {
    volatile char* line = memory_.data() + i;
    *line = *line;
  }
}

}  // namespace isomer
