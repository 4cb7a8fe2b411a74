#ifndef ISOMER_RUNTIME_DATA_PERMUTATION_H_
#define ISOMER_RUNTIME_DATA_PERMUTATION_H_

#include <cstdint>

namespace isomer {

// A permutation of 0, .., size - 1 that a key draws, without memory for it: where an index goes is
// computed when it is asked for, so that 10^12 rows are shuffled as fast as ten.
//
// It is a cipher on numbers below `size` (Black, Rogaway, "Ciphers with Arbitrary Finite Domains",
// CT-RSA 2002): a Feistel network of eight rounds (Luby, Rackoff, 1988) permutes the numbers of 2k
// bits, 4^k being the first such power that is `size` or more; while it gives a number that is too
// large, it is applied again ("cycle walking"), which stays on the number's own cycle, so that
// different indices stay different. 4^k is below four times `size`: it is applied fewer than four
// times on average. The round function is HashMix of a half, the key and the round.
class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(int64_t size, uint64_t key);

  int64_t size() const { return size_; }
  // REQUIRES: 0 <= index < size().
  int64_t operator()(int64_t index) const;

 private:
  int64_t size_;
  uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_PERMUTATION_H_
