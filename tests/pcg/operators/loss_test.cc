#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::HasSubstr;

TEST(BinaryCrossEntropy, IsTheMeanNegativeLogLikelihood) {
  const Tensor x = Random({3, 4}, 1), t = OutputOf("sigmoid", {Random({3, 4}, 2)});
  double expected = 0;
  for (size_t i = 0; i < 12; ++i) {
    const double p = 1 / (1 + std::exp(-x.data[i]));
    expected -= (t.data[i] * std::log(p) + (1 - t.data[i]) * std::log(1 - p)) / 12;
  }
  EXPECT_NEAR(OutputOf("binary_cross_entropy", {x, t}).data[0], expected, 1e-12);
}

TEST(BinaryCrossEntropy, LargeLogitsDoNotOverflow) {
  const Tensor x = Filled({2}, {1000, -1000});
  EXPECT_EQ(OutputOf("binary_cross_entropy", {x, Filled({2}, {1, 0})}).data[0], 0);
  EXPECT_EQ(OutputOf("binary_cross_entropy", {x, Filled({2}, {0, 1})}).data[0], 1000);
}

TEST(BinaryCrossEntropy, RefusesTargetsOfAnotherShape) {
  EXPECT_THAT(ErrorOf("binary_cross_entropy", {{2, 4}, {2, 1}}), HasSubstr("dim i1 is 4"));
  EXPECT_THAT(ErrorOf("binary_cross_entropy", {{2, 4}, {2}}), HasSubstr("rank 1, not 2"));
}

}  // namespace
}  // namespace isomer
