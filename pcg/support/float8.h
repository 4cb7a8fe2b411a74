// The 8-bit floating-point types of matrix products, as they are stored, and rounding to them.
// Micikevicius et al., "FP8 Formats for Deep Learning", 2022; Open Compute Project, "OCP 8-bit
// Floating Point Specification (OFP8)", revision 1.0, 2023.
//
//          exponent  fraction  bias  largest  smallest normal  smallest  infinities
//   E4M3   4 bits    3 bits    7     448      2^-6             2^-9      none: NaN
//   E5M2   5 bits    2 bits    15    57344    2^-14            2^-16     as IEEE 754
//
// Rounding is to nearest, ties to even. What is too large is not clamped: it becomes a NaN in E4M3
// and infinite in E5M2.
#ifndef ISOMER_PCG_SUPPORT_FLOAT8_H_
#define ISOMER_PCG_SUPPORT_FLOAT8_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace isomer {

enum class Float8Format { kE4M3, kE5M2 };

// The largest number of a format.
constexpr float Float8Max(Float8Format format) {
  return format == Float8Format::kE4M3 ? 448.0f : 57344.0f;
}
// Half the distance of 1 to the next number.
constexpr double Float8UnitRoundoff(Float8Format format) {
  return format == Float8Format::kE4M3 ? 0x1p-4 : 0x1p-3;
}

// The number of a format nearest to `value`. On integers, whose selections have no branches, so
// that loops over it vectorise.
template <Float8Format kFormat>
inline float RoundToFloat8(float value) {
  constexpr bool kIsE4M3 = kFormat == Float8Format::kE4M3;
  constexpr int kDropped = kIsE4M3 ? 20 : 21;  // bits of a float's fraction
  constexpr int32_t kLeastNormal = std::bit_cast<int32_t>(kIsE4M3 ? 0x1p-6f : 0x1p-14f);
  // Its last bit is worth the smallest number of the format: to add it rounds to multiples of that.
  constexpr float kShift = kIsE4M3 ? 0x1p14f : 0x1p7f;
  constexpr int32_t kMost = std::bit_cast<int32_t>(Float8Max(kFormat));
  constexpr int32_t kInfinity = 0x7f800000, kNan = 0x7fc00000;
  const auto word = std::bit_cast<int32_t>(value);
  const int32_t magnitude = word & 0x7fffffff, sign = word ^ magnitude;
  const int32_t up = magnitude + ((1 << (kDropped - 1)) - 1) + ((magnitude >> kDropped) & 1);
  const int32_t normal = up & -(1 << kDropped);
  const auto subnormal =
      std::bit_cast<int32_t>((std::bit_cast<float>(magnitude) + kShift) - kShift);
  const int32_t is_subnormal = -static_cast<int32_t>(magnitude < kLeastNormal);
  int32_t rounded = (subnormal & is_subnormal) | (normal & ~is_subnormal);
  rounded = rounded > kMost ? (kIsE4M3 ? kNan : kInfinity) : rounded;
  rounded = magnitude > kInfinity ? kNan : rounded;
  return std::bit_cast<float>(rounded | sign);
}

// A number of a format as it is stored: sign, exponent, fraction.
template <Float8Format kFormat>
struct Float8 {
  uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) {
    const float rounded = RoundToFloat8<kFormat>(value);
    const uint32_t word = std::bit_cast<uint32_t>(rounded);
    const auto sign = static_cast<uint8_t>((word >> 24) & 0x80);
    const float magnitude = std::abs(rounded);
    if (std::isnan(rounded)) {
      bits = sign | 0x7f;
    } else if (std::isinf(rounded)) {
      bits = sign | 0x7c;  // of E5M2 alone
    } else if (magnitude < kLeastNormal) {
      bits = sign | static_cast<uint8_t>(magnitude / kSmallest);
    } else {
      const uint32_t rebiased = (word & 0x7fffffff) - (static_cast<uint32_t>(127 - kBias) << 23);
      bits = sign | static_cast<uint8_t>(rebiased >> (23 - kFraction));
    }
  }
  operator float() const {  // NOLINT: exact
    const int exponent = (bits & 0x7f) >> kFraction, fraction = bits & ((1 << kFraction) - 1);
    const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
    if ((bits & 0x7f) > kLargest) {
      const bool is_infinite = kFormat == Float8Format::kE5M2 && fraction == 0;
      return std::copysign(is_infinite ? std::numeric_limits<float>::infinity()
                                       : std::numeric_limits<float>::quiet_NaN(),
                           sign);
    }
    if (exponent == 0) return sign * static_cast<float>(fraction) * kSmallest;
    return sign * std::ldexp(static_cast<float>((1 << kFraction) + fraction),
                             exponent - kBias - kFraction);
  }

 private:
  static constexpr bool kIsE4M3 = kFormat == Float8Format::kE4M3;
  static constexpr int kFraction = kIsE4M3 ? 3 : 2, kBias = kIsE4M3 ? 7 : 15;
  static constexpr int kLargest = kIsE4M3 ? 0x7e : 0x7b;  // its bits
  static constexpr float kLeastNormal = kIsE4M3 ? 0x1p-6f : 0x1p-14f;
  static constexpr float kSmallest = kIsE4M3 ? 0x1p-9f : 0x1p-16f;
};

using Float8E4M3 = Float8<Float8Format::kE4M3>;
using Float8E5M2 = Float8<Float8Format::kE5M2>;

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_FLOAT8_H_
