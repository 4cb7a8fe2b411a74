// Cyclic redundancy sums of 32 bits, which file formats of others have. Our own files have digests
// (digest.h).
#ifndef ISOMER_PCG_SUPPORT_CRC32_H_
#define ISOMER_PCG_SUPPORT_CRC32_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace isomer {

template <uint32_t kReflectedPolynomial>
class CyclicSum {
 public:
  void Add(absl::string_view bytes) {
    static constexpr std::array<uint32_t, 256> kTable = Table();
    for (char byte : bytes) {
      state_ = (state_ >> 8) ^ kTable[(state_ ^ static_cast<uint8_t>(byte)) & 0xff];
    }
  }
  uint32_t value() const { return ~state_; }

 private:
  static constexpr std::array<uint32_t, 256> Table() {
    std::array<uint32_t, 256> table = {};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t remainder = byte;
      for (int bit = 0; bit < 8; ++bit) {
        remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kReflectedPolynomial : 0);
      }
      table[byte] = remainder;
    }
    return table;
  }

  uint32_t state_ = ~uint32_t{0};
};

using Crc32 = CyclicSum<0xedb88320>;          // of ISO 3309, as ZIP has it
using CastagnoliCrc = CyclicSum<0x82f63b78>;  // CRC-32C, of RFC 3720, appendix B.4

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_CRC32_H_
