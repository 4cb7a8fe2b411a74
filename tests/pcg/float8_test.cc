// Every value of the 8-bit floating-point types, and every place where rounding changes its mind.
#include "pcg/support/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace isomer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename Number, Float8Format kFormat, int kExponentBits>
struct Float8Case {
  using Type = Number;
  static constexpr Float8Format kOf = kFormat;
  // The value from its definition; of what is no number, the next power that it would be.
  static double Decode(int bits) {
    const int fraction_bits = 7 - kExponentBits, bias = (1 << (kExponentBits - 1)) - 1;
    const int exponent = bits >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  static constexpr int kLargest = kFormat == Float8Format::kE4M3 ? 0x7e : 0x7b;
};

template <typename C>
class Float8Test : public testing::Test {};
using Float8Cases = testing::Types<Float8Case<Float8E4M3, Float8Format::kE4M3, 4>,
                                   Float8Case<Float8E5M2, Float8Format::kE5M2, 5>>;
TYPED_TEST_SUITE(Float8Test, Float8Cases);

TYPED_TEST(Float8Test, EveryNumberIsReadAsDefinedAndWrittenBack) {
  using Number = typename TypeParam::Type;
  for (int bits = 0; bits <= TypeParam::kLargest; ++bits) {
    for (int sign : {0, 0x80}) {
      Number number;
      number.bits = static_cast<uint8_t>(bits | sign);
      const float value = number;
      EXPECT_EQ(value, (sign != 0 ? -1 : 1) * TypeParam::Decode(bits)) << bits;
      EXPECT_EQ(std::signbit(value), sign != 0) << bits;
      EXPECT_EQ(Number(value).bits, number.bits);
      EXPECT_EQ(RoundToFloat8<TypeParam::kOf>(value), value);
    }
  }
}

TYPED_TEST(Float8Test, RoundsToNearestAndTiesToEven) {
  using Number = typename TypeParam::Type;
  for (int bits = 0; bits < TypeParam::kLargest; ++bits) {
    const auto low = static_cast<float>(TypeParam::Decode(bits));
    const auto high = static_cast<float>(TypeParam::Decode(bits + 1));
    const float middle = low + (high - low) / 2;  // exact
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(Number(middle).bits, even) << middle;
    EXPECT_EQ(Number(-middle).bits, even | 0x80) << middle;
    EXPECT_EQ(Number(std::nextafter(middle, 0.0f)).bits, bits) << middle;
    EXPECT_EQ(Number(std::nextafter(middle, kInfinity)).bits, bits + 1) << middle;
    EXPECT_EQ(RoundToFloat8<TypeParam::kOf>(middle), TypeParam::Decode(even)) << middle;
  }
}

TYPED_TEST(Float8Test, WhatIsNoNumberStaysNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  using Number = typename TypeParam::Type;
  EXPECT_TRUE(std::isnan(static_cast<float>(Number(nan))));
  EXPECT_TRUE(std::isnan(RoundToFloat8<TypeParam::kOf>(nan)));
  EXPECT_TRUE(std::isnan(RoundToFloat8<TypeParam::kOf>(-nan)));
  for (int bits = TypeParam::kLargest + 1; bits < 0x80; ++bits) {
    Number number;
    number.bits = static_cast<uint8_t>(bits);
    EXPECT_FALSE(std::isfinite(static_cast<float>(number))) << bits;
  }
}

TEST(Float8, E4M3HasNoInfinityAndEndsAt448) {
  EXPECT_EQ(RoundToFloat8<Float8Format::kE4M3>(448.0f), 448.0f);
  // Nearer to 448 than to 480, which would be next; a tie goes to the even 448.
  EXPECT_EQ(RoundToFloat8<Float8Format::kE4M3>(464.0f), 448.0f);
  EXPECT_TRUE(std::isnan(RoundToFloat8<Float8Format::kE4M3>(std::nextafter(464.0f, kInfinity))));
  EXPECT_TRUE(std::isnan(RoundToFloat8<Float8Format::kE4M3>(kInfinity)));
  EXPECT_TRUE(std::isnan(static_cast<float>(Float8E4M3(-kInfinity))));
  EXPECT_EQ(Float8E4M3(-448.0f).bits, 0xfe);
}

TEST(Float8, E5M2EndsAt57344AndHasInfinities) {
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(57344.0f), 57344.0f);
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(std::nextafter(61440.0f, 0.0f)), 57344.0f);
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(61440.0f), kInfinity);
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(-kInfinity), -kInfinity);
  EXPECT_EQ(static_cast<float>(Float8E5M2(-kInfinity)), -kInfinity);
  EXPECT_EQ(Float8E5M2(kInfinity).bits, 0x7c);
}

TEST(Float8, SubnormalsAreMultiplesOfTheSmallestNumber) {
  EXPECT_EQ(RoundToFloat8<Float8Format::kE4M3>(0x1p-10f), 0);  // a tie, to even
  EXPECT_EQ(RoundToFloat8<Float8Format::kE4M3>(0x1.8p-10f), 0x1p-9f);
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(0x1p-17f), 0);
  EXPECT_EQ(RoundToFloat8<Float8Format::kE5M2>(-0x1.8p-17f), -0x1p-16f);
  EXPECT_TRUE(std::signbit(RoundToFloat8<Float8Format::kE4M3>(-0.0f)));
  EXPECT_TRUE(std::signbit(static_cast<float>(Float8E4M3(-0x1p-20f))));
}

}  // namespace
}  // namespace isomer
