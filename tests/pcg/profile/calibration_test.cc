#include "pcg/profile/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace isomer {
namespace {

// launch + flops / 100 + bytes / 10.
double KnownUs(double flops, double bytes) { return 3 + flops / 100 + bytes / 10; }

std::vector<KernelSample> Samples(int count, double noise, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(2, 6), factor(1 - noise, 1 + noise);
  std::vector<KernelSample> samples;
  for (int i = 0; i < count; ++i) {
    const double flops = std::pow(10, exponent(random)), bytes = std::pow(10, exponent(random));
    samples.push_back({flops, bytes, KnownUs(flops, bytes) * factor(random)});
  }
  return samples;
}

TEST(Calibration, RecoversAKnownRoofline) {
  const auto samples = Samples(20, 0, 1);
  for (const auto& [flops, bytes] : {std::pair(1e2, 1e2), {1e5, 1e3}, {3e5, 1e6}, {1e7, 1e4}}) {
    EXPECT_NEAR(FitUs(samples, flops, bytes), KnownUs(flops, bytes), 1e-4 * KnownUs(flops, bytes));
  }
}

TEST(Calibration, AFewWildSamplesDoNotMatter) {
  auto samples = Samples(40, 0.02, 2);
  for (size_t i = 0; i < samples.size(); i += 13) samples[i].us *= 20;
  EXPECT_NEAR(FitUs(samples, 1e5, 1e4), KnownUs(1e5, 1e4), 0.1 * KnownUs(1e5, 1e4));
}

TEST(Calibration, NeverFallsWithMoreWorkAtTheSamePlaceNorBelowZero) {
  // Only large kernels: the launch is anyone's guess, but not negative.
  std::vector<KernelSample> samples;
  for (double scale : {1e6, 2e6, 4e6, 8e6}) samples.push_back({scale, scale, scale / 90});
  EXPECT_GT(FitUs(samples, 1, 1), 0);
  EXPECT_NEAR(FitUs(samples, 3e6, 3e6), 3e6 / 90, 3e3);
}

Profile ProfileOf(const std::string& family, int count, double us_of_flops) {
  Profile profile;
  for (int i = 1; i <= count; ++i) {
    KernelTime& time = profile.kernels[family + std::to_string(i)];
    time.flops = 1000.0 * i;
    time.bytes = 100 * i;
    time.median_us = 1 + us_of_flops * time.flops;
    time.family = family;
  }
  return profile;
}

TEST(Calibration, FamiliesWithFewKernelsBorrowFromTheirClass) {
  const Calibration calibration(ProfileOf("matmul f32", 5, 0.01));
  const auto own = calibration.UsOf("matmul f32", 2500, 250);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->from, "matmul f32");
  EXPECT_EQ(own->neighbours, 5);
  EXPECT_NEAR(own->us, 26, 0.1);
  const auto borrowed = calibration.UsOf("linear f32", 2500, 250);
  ASSERT_TRUE(borrowed.has_value());
  EXPECT_EQ(borrowed->from, "contraction f32");
  EXPECT_FALSE(calibration.UsOf("relu f32", 2500, 250).has_value());
  EXPECT_FALSE(calibration.UsOf("linear bf16", 2500, 250).has_value());
  EXPECT_FALSE(calibration.UsOf("linear f32 gradient", 2500, 250).has_value());
}

TEST(Calibration, TwoKernelsAreTooFew) {
  EXPECT_FALSE(Calibration(ProfileOf("relu f32", 2, 0.01)).UsOf("relu f32", 1, 1).has_value());
  EXPECT_FALSE(Calibration(Profile()).UsOf("relu f32", 1, 1).has_value());
}

TEST(Calibration, HeldOutKernelsShowTheError) {
  const auto exact = Calibration(ProfileOf("relu f32", 8, 0.01)).LeaveOneOut();
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_EQ(exact[0].samples, 8);
  EXPECT_LT(exact[0].worst_error, 1e-3);
  Profile bad = ProfileOf("relu f32", 8, 0.01);
  bad.kernels.begin()->second.median_us *= 3;
  EXPECT_GT(Calibration(bad).LeaveOneOut("relu f32").worst_error, 0.5);
}

}  // namespace
}  // namespace isomer
