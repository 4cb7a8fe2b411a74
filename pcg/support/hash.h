// Structural hashes: the same in every run, on every platform, in files and in memory.
//
// absl::Hash is seeded per process and serves hash tables; these serve canonical order, file
// digests and everything that must not change from run to run. They guard against accidents, not
// against an adversary: where equality decides correctness, compare the values too.
#ifndef ISOMER_PCG_SUPPORT_HASH_H_
#define ISOMER_PCG_SUPPORT_HASH_H_

#include <concepts>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace isomer {

// A bijection of 64-bit words in which every bit of the result depends on every bit of `x`
// (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA'14).
constexpr uint64_t HashMix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The hash of a sequence, one element at a time; order matters. For a set, add (+) the HashMix of
// its elements and combine the sum.
constexpr uint64_t HashCombine(uint64_t seed, uint64_t value) {
  return HashMix(HashMix(seed) ^ value);
}
template <std::convertible_to<uint64_t>... Values>
constexpr uint64_t HashCombine(uint64_t seed, uint64_t first, uint64_t second, Values... rest) {
  return HashCombine(HashCombine(seed, first), second, rest...);
}

// Two byte strings of one length that differ only within one aligned 8-byte word never collide.
uint64_t HashBytes(absl::string_view bytes, uint64_t seed = 0);

// 16 lower-case hex digits, as shown in files and reports.
std::string DigestString(uint64_t hash);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_HASH_H_
