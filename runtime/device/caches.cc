#include "runtime/device/caches.h"

#include <unistd.h>

#include <algorithm>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace isomer {
namespace {

constexpr int64_t kLine = 64;

int64_t CacheBytes(int name) {
  const long bytes = sysconf(name);
  constexpr long kUsual = 2 << 20;
  return bytes > 0 ? bytes : kUsual;
}

}  // namespace

CacheSizes CachesOfDevice(int64_t devices) {
  // What a system says beyond is of a cache that cores share.
  constexpr int64_t kMostOfACore = int64_t{32} << 20;
  const int64_t near = std::min(CacheBytes(_SC_LEVEL2_CACHE_SIZE), kMostOfACore);
  return {near, std::max(near, CacheBytes(_SC_LEVEL3_CACHE_SIZE) / devices)};
}

void Touch(char* data, int64_t bytes, bool is_written) {
  for (int64_t i = 0; i < bytes; i += kLine) {
    volatile char* line = data + i;
    const char held = *line;
    if (is_written) *line = held;
  }
}

CacheSweeper::CacheSweeper(const CacheSizes& caches)
    : near_(static_cast<size_t>(2 * caches.near), 1),
      last_(static_cast<size_t>(2 * caches.last), 1) {}

void CacheSweeper::Evict(const char* data, int64_t bytes) {
#ifdef __x86_64__
  for (int64_t i = 0; i < bytes; i += kLine) _mm_clflush(data + i);
  _mm_mfence();
#endif
  for (size_t left = std::min(static_cast<size_t>(bytes), last_.size() / 2); left > 0;) {
    const size_t part = std::min(left, last_.size() - next_);
    Touch(last_.data() + next_, static_cast<int64_t>(part), /*is_written=*/true);
    next_ = (next_ + part) % last_.size();
    left -= part;
  }
}

}  // namespace isomer
