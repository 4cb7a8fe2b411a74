// The caches of a core, and what they hold.
#ifndef ISOMER_RUNTIME_CACHES_H_
#define ISOMER_RUNTIME_CACHES_H_

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

// Takes it out of all caches, where the processor can (x86); else it stays where it is.
void Flush(const char* data, int64_t bytes);

// Pushes everything else out of caches of up to as many bytes.
class CacheSweeper {
 public:
  // Twice as many, so that hardly anything is left.
  explicit CacheSweeper(int64_t bytes) : memory_(static_cast<size_t>(2 * bytes), 1) {}
  void Sweep() { Touch(memory_.data(), static_cast<int64_t>(memory_.size()), true); }

 private:
  std::vector<char> memory_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CACHES_H_
