// The 16-bit floating-point types as they are stored. Arithmetic is done in float.
#ifndef ISOMER_PCG_SUPPORT_HALF_H_
#define ISOMER_PCG_SUPPORT_HALF_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace isomer {

// A double as a float such that rounding once more, to fewer bits, gives what rounding the double
// would: an inexact result is made odd, so that it is never mistaken for a tie (Boldo, Melquiond,
// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;  // Towards zero.
  return std::bit_cast<float>(bits | 1);
}

// The upper half of a float: 8 bits of exponent, 7 of fraction.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  // To nearest, ties to even. A NaN stays one.
  explicit BFloat16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) {
      bits = static_cast<uint16_t>((word >> 16) | 0x40);
    } else {
      bits = static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
    }
  }
  explicit BFloat16(double value) : BFloat16(RoundToOdd(value)) {}
  operator float() const {  // NOLINT: exact
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  // To nearest, ties to even; infinite from 65520 on. A NaN stays one.
  explicit Float16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000);
    const uint32_t magnitude = word & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      bits = sign | 0x7e00;
    } else if (magnitude >= 0x477ff000) {
      bits = sign | 0x7c00;
    } else if (magnitude < 0x38800000) {  // Below 2^-14: a multiple of 2^-24, as 0.5 + it shows.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      bits = sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
    } else {
      const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
      bits = sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
    }
  }
  explicit Float16(double value) : Float16(RoundToOdd(value)) {}
  operator float() const {  // NOLINT: exact
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
    if (magnitude >= 0x0f800000) return std::bit_cast<float>(sign | magnitude | 0x7f800000);
    // Scaling by 2^112 moves the exponent to float's bias, and makes subnormals normal.
    return std::bit_cast<float>(
        sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
  }
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_HALF_H_
