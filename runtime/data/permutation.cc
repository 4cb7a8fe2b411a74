#include "runtime/data/permutation.h"

#include "pcg/support/hash.h"

namespace isomer {

Permutation::Permutation(int64_t size, uint64_t key) : size_(size), key_(key) {
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(size)) {
    ++half_bits_;
  }
  // Beyond 2^62 rows halves of 32 bits are needed.
  if ((uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(size)) half_bits_ = 32;
}

int64_t Permutation::operator()(int64_t index) const {
  constexpr int kRounds = 8;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t number = static_cast<uint64_t>(index);
  do {
    uint64_t left = number >> half_bits_, right = number & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (HashCombine(key_, round, right) & mask);
      left = right;
      right = next;
    }
    number = left << half_bits_ | right;
  } while (number >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(number);
}

}  // namespace isomer
