// Every value of the 16-bit floating-point types, and every place where rounding changes its mind.
#include "pcg/support/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace isomer {
namespace {

// The value from its definition: sign, exponent, fraction.
double Decode(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <typename Half, int kExponentBits>
struct Format {
  using Type = Half;
  static double Decode(uint16_t bits) { return isomer::Decode(bits, kExponentBits); }
};

template <typename F>
class HalfTest : public testing::Test {};
using Formats = testing::Types<Format<BFloat16, 8>, Format<Float16, 5>>;
TYPED_TEST_SUITE(HalfTest, Formats);

TYPED_TEST(HalfTest, EveryValueIsReadAsDefinedAndWrittenBack) {
  using Half = typename TypeParam::Type;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const double expected = TypeParam::Decode(half.bits);
    const float value = half;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(static_cast<double>(value))))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(Half(value).bits, bits);
    ASSERT_EQ(Half(static_cast<double>(value)).bits, bits);
  }
}

TYPED_TEST(HalfTest, RoundsToNearestAndTiesToEven) {
  using Half = typename TypeParam::Type;
  for (uint16_t bits = 0; std::isfinite(TypeParam::Decode(bits)); ++bits) {
    // After the largest number comes what would be the next, and stands for infinity.
    const double low = TypeParam::Decode(bits);
    const double next = TypeParam::Decode(static_cast<uint16_t>(bits + 1));
    const double high = std::isfinite(next)
                            ? next
                            : low + (low - TypeParam::Decode(static_cast<uint16_t>(bits - 1)));
    const double middle = low + (high - low) / 2;
    const uint16_t even = bits % 2 == 0 ? bits : static_cast<uint16_t>(bits + 1);
    const double below = std::nextafter(middle, low), above = std::nextafter(middle, high);
    ASSERT_EQ(Half(middle).bits, even) << middle;
    ASSERT_EQ(Half(below).bits, bits) << below;
    ASSERT_EQ(Half(above).bits, bits + 1) << above;
    ASSERT_EQ(Half(-middle).bits, even | 0x8000) << middle;
    const float float_middle = static_cast<float>(middle);
    if (static_cast<double>(float_middle) != middle) continue;  // Below the smallest float.
    ASSERT_EQ(Half(float_middle).bits, even) << middle;
    ASSERT_EQ(Half(std::nextafter(float_middle, 0.0f)).bits, bits) << middle;
    ASSERT_EQ(Half(std::nextafter(float_middle, std::numeric_limits<float>::infinity())).bits,
              bits + 1)
        << middle;
  }
}

TEST(Half, TooLargeNumbersAreInfinite) {
  EXPECT_EQ(Float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-1e30).bits, 0xfc00);
  EXPECT_EQ(BFloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-std::numeric_limits<double>::infinity()).bits, 0xff80);
}

}  // namespace
}  // namespace isomer
