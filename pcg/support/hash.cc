#include "pcg/support/hash.h"

#include "absl/strings/str_cat.h"

namespace isomer {

uint64_t HashBytes(absl::string_view bytes, uint64_t seed) {
  uint64_t hash = HashCombine(seed, bytes.size());
  while (!bytes.empty()) {
    // Little-endian whatever the machine; the last word is filled up with zeros.
    absl::string_view word_bytes = bytes.substr(0, 8);
    uint64_t word = 0;
    for (size_t i = 0; i < word_bytes.size(); ++i) {
      word |= uint64_t{static_cast<unsigned char>(word_bytes[i])} << (8 * i);
    }
    hash = HashMix(hash ^ word);
    bytes.remove_prefix(word_bytes.size());
  }
  return hash;
}

std::string DigestString(uint64_t hash) { return absl::StrCat(absl::Hex(hash, absl::kZeroPad16)); }

}  // namespace isomer
