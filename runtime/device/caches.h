// The caches of a core, and what they hold.
#ifndef ISOMER_RUNTIME_DEVICE_CACHES_H_
#define ISOMER_RUNTIME_DEVICE_CACHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isomer {

// How many bytes of what a device touched last it finds again: in its core's second level, and in
// the last, of which devices that work side by side have equal parts.
struct CacheSizes {
  int64_t near = 0, last = 0;
};
// Of this computer, with so many devices at work; 2 MiB each where the system does not say.
CacheSizes CachesOfDevice(int64_t devices);

// Where bytes are found.
enum class CacheLevel { kMemory, kLast, kNear };

// As if it had just been read, or, if it `is_written`, written.
void Touch(char* data, int64_t bytes, bool is_written);

// Makes of caches what a step leaves them: full of what was written.
class CacheSweeper {
 public:
  explicit CacheSweeper(const CacheSizes& caches);
  // Pushes what the nearest cache has into the last one, and nothing out of that.
  void SweepNear() { Touch(near_.data(), static_cast<int64_t>(near_.size()), /*is_written=*/true); }
  // Takes it out of all caches, where the processor can (x86); else it stays where it is. Others'
  // bytes take its place: who brings it back, or writes it anew, waits until they are written to
  // memory, as in a step, and finds no place empty.
  void Evict(const char* data, int64_t bytes);

 private:
  // Twice as many bytes as a cache has: when the end is written, hardly anything else is left, nor
  // the beginning.
  std::vector<char> near_, last_;
  size_t next_ = 0;  // in last_, to be written
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_CACHES_H_
