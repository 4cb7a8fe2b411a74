// Functions of the kernels' own against those of the C library, in double.
#include "runtime/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace isomer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest relative error between `low` and `high`, where the value is a normal number.
template <typename F, typename G>
double WorstError(float low, float high, F f, G exact) {
  double worst = 0;
  constexpr int kSteps = 200'000;
  for (int i = 0; i <= kSteps; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kSteps;
    const double expected = exact(static_cast<double>(x));
    if (std::abs(expected) < std::numeric_limits<float>::min()) continue;
    worst = std::max(worst, std::abs(f(x) - expected) / std::abs(expected));
  }
  return worst;
}

TEST(VectorMath, IsWithinAFewRoundingsOfTheCLibrary) {
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_LT(WorstError(
                -87, 88.7f, [](float x) { return Exp(x); }, [](double x) { return std::exp(x); }),
            2e-7);
  EXPECT_LT(WorstError(
                -20, 20, [](float x) { return Tanh(x); }, [](double x) { return std::tanh(x); }),
            3e-7);
  EXPECT_LT(WorstError(
                -80, 80, [](float x) { return Logistic(x); }, logistic),
            3e-7);
  EXPECT_LT(WorstError(
                -5, 20, [](float x) { return NormalCdf(x); }, cdf),
            3e-6);
}

TEST(VectorMath, AtTheEnds) {
  EXPECT_EQ(Exp(0.0f), 1);
  EXPECT_EQ(Exp(-kInfinity), 0);
  EXPECT_EQ(Exp(-1000.0f), 0);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(1000.0f), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(std::nanf(""))));
  EXPECT_NEAR(Exp(-95.0f), std::exp(-95.0), 1e-44);  // no normal number
  EXPECT_EQ(Logistic(-200.0f), 0);
  EXPECT_EQ(Logistic(200.0f), 1);
  EXPECT_EQ(Logistic(0.0f), 0.5f);
  EXPECT_EQ(Tanh(0.0f), 0);
  EXPECT_EQ(Tanh(50.0f), 1);
  EXPECT_EQ(Tanh(-kInfinity), -1);
  EXPECT_EQ(NormalCdf(kInfinity), 1);
  EXPECT_EQ(NormalCdf(-40.0f), 0);
  EXPECT_TRUE(std::isnan(Tanh(std::nanf(""))));
  EXPECT_TRUE(std::isnan(NormalCdf(std::nanf(""))));
}

TEST(VectorMath, LinesOfEveryLength) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 4);
  for (int64_t n = 1; n <= 200; ++n) {
    std::vector<float> x(n), y(n);
    for (float& value : x) value = normal(random);
    const float max = MaxOf(x.data(), n);
    EXPECT_EQ(max, *std::max_element(x.begin(), x.end()));
    double sum = 0;
    for (float value : x) sum += value;
    EXPECT_NEAR(LineSum(x.data(), n), sum, 1e-12 * n);
    sum = 0;
    for (float value : x) sum += std::exp(static_cast<double>(value) - max);
    EXPECT_NEAR(SumOfExp(x.data(), max, n), sum, 1e-6 * sum);
    EXPECT_NEAR(ExpAndSum(x.data(), max, n, y.data()), sum, 1e-6 * sum);
    for (int64_t j = 0; j < n; ++j) EXPECT_NEAR(y[j], std::exp(x[j] - max), 1e-6);
    ExpAndSum(x.data(), max, n, x.data());  // in place
    EXPECT_EQ(x, y);
  }
  const std::vector<float> masked = {-kInfinity, 2, -kInfinity};
  EXPECT_EQ(MaxOf(masked.data(), 3), 2);
  EXPECT_EQ(SumOfExp(masked.data(), 2, 3), 1);
}

}  // namespace
}  // namespace isomer
