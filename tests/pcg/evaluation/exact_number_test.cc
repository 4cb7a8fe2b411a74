#include "pcg/evaluation/exact_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace isomer {
namespace {

TEST(ExactNumber, ADoubleIsTheFractionThatItIs) {
  EXPECT_EQ(ExactNumber::FromDouble(0.375), ExactNumber(3) / ExactNumber(8));
  EXPECT_FALSE(ExactNumber::FromDouble(0.1) == ExactNumber(1) / ExactNumber(10));
  EXPECT_EQ(ExactNumber::FromDouble(-0.0), ExactNumber(0));
  EXPECT_EQ((ExactNumber(1) / ExactNumber(-3)).ToString(), "-1/3");
  EXPECT_EQ((ExactNumber(2) / ExactNumber(6)).Hash(), (ExactNumber(1) / ExactNumber(3)).Hash());
}

TEST(ExactNumber, IsADoubleOnlyIfNothingIsRounded) {
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(ExactNumber::FromDouble(0.1).AsDouble(), 0.1);
  EXPECT_EQ(ExactNumber::FromDouble(kSmallest).AsDouble(), kSmallest);
  EXPECT_EQ((ExactNumber(1) / ExactNumber(3)).AsDouble(), std::nullopt);
  EXPECT_EQ((ExactNumber::FromDouble(kSmallest) / ExactNumber(2)).AsDouble(), std::nullopt);
}

TEST(ExactNumber, NumbersThatDoNotFitAWord) {
  const ExactNumber large = int64_t{1} << 62, tiny = ExactNumber::FromDouble(0x1p-900);
  EXPECT_EQ((large * large).ToString(), "21267647932558653966460912964485513216");
  EXPECT_EQ(large * large / large, large);
  EXPECT_EQ(large + large - large, large);
  EXPECT_EQ((large + large).AsDouble(), 0x1p63);
  EXPECT_EQ(tiny * tiny / tiny, tiny);
  EXPECT_EQ((tiny - tiny * 2).Sign(), -1);
  EXPECT_TRUE((tiny - tiny).IsZero());
  const ExactNumber copy = large * large;
  ExactNumber other = 3;
  other = copy;
  EXPECT_EQ(other, copy);
  EXPECT_FALSE(other == large);
}

TEST(ExactNumber, ProductsAndQuotientsOfDoublesAreNotRounded) {
  struct Case {
    double a, b;
    std::optional<double> product, quotient;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Case& c :
       {Case{0.5, 0.125, 0.0625, 4.0}, Case{0.1, 10, std::nullopt, std::nullopt},
        // Doubles round this to 0 and to 1, so that a scale of 0 and one of 1 are
        // both this factor.
        Case{1e-162, 1e-162, std::nullopt, 1.0}, Case{1e300, 1e300, std::nullopt, 1.0},
        Case{3, 0, 0.0, std::nullopt}, Case{kInfinity, 2, std::nullopt, std::nullopt},
        Case{2, std::nan(""), std::nullopt, std::nullopt}}) {
    EXPECT_EQ(ExactProduct({c.a, c.b}), c.product) << c.a << " * " << c.b;
    EXPECT_EQ(ExactQuotient(c.a, c.b), c.quotient) << c.a << " / " << c.b;
  }
}

}  // namespace
}  // namespace isomer
