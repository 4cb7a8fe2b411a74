#ifndef ISOMER_RUNTIME_CACHE_SWEEPER_H_
#define ISOMER_RUNTIME_CACHE_SWEEPER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isomer {

// Of a core; 2 MiB where the system does not say.
int64_t SecondLevelCacheBytes();

// Pushes everything else out of caches of up to as many bytes.
class CacheSweeper {
 public:
  explicit CacheSweeper(int64_t bytes) : memory_(static_cast<size_t>(bytes), 1) {}
  void Sweep();

 private:
  std::vector<char> memory_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CACHE_SWEEPER_H_
