#include "runtime/checking/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace isomer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

StepValues Output(double value) { return {.outputs = {{"y", Array<double>({4}, value)}}}; }

TEST(Compare, CountsNaNAndMissingTensorsAsWrong) {
  const StepBounds bounds{.outputs = {{"y", 1.5}}};
  EXPECT_FALSE(Compare(Output(1), {}, bounds).agrees());
  EXPECT_FALSE(Compare(Output(1), Output(std::nan("")), bounds).agrees());
  EXPECT_EQ(Compare(Output(1), Output(std::nan("")), bounds).max_rel_error, kInfinity);
  EXPECT_FALSE(Compare(Output(1), Output(kInfinity), bounds).agrees());
  StepValues other = Output(1);
  other.outputs["y"].shape = {2, 2};
  EXPECT_FALSE(Compare(Output(1), other, bounds).agrees());
}

TEST(Compare, ErrorsAreEuclidean) {
  const Comparison comparison = Compare(Output(1), Output(1.01), {.outputs = {{"y", 0.03}}});
  EXPECT_NEAR(comparison.outputs.at("y").error, 0.02, 1e-12);
  EXPECT_NEAR(comparison.outputs.at("y").norm, 2, 1e-12);
  EXPECT_NEAR(comparison.max_rel_error, 0.01, 1e-12);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_TRUE(comparison.not_comparable.empty());
  EXPECT_FALSE(Compare(Output(1), Output(1.02), {.outputs = {{"y", 0.03}}}).agrees());
}

TEST(Compare, WithoutABoundNothingMayDiffer) {
  EXPECT_TRUE(Compare(Output(1), Output(1), {}).agrees());
  EXPECT_TRUE(Compare(Output(0), Output(0), {}).not_comparable.empty());
  EXPECT_FALSE(Compare(Output(1), Output(1 + 1e-12), {}).agrees());
}

// A gradient that is zero in theory: nothing can be told of it, but that it is as small.
TEST(Compare, WhatRoundingMayChangeAllOfIsNotComparable) {
  const StepBounds bounds{.outputs = {{"y", 1e-6}}};
  const Comparison comparison = Compare(Output(1e-8), Output(-2e-7), bounds);
  EXPECT_FALSE(comparison.differs());
  EXPECT_FALSE(comparison.compared());
  EXPECT_FALSE(comparison.agrees()) << "nothing is known";
  EXPECT_EQ(comparison.not_comparable, std::vector<std::string>{"output y"});
  EXPECT_EQ(comparison.max_rel_error, 0) << "nothing was compared";
  EXPECT_TRUE(Compare(Output(1e-8), Output(1e-3), bounds).differs());
}

TEST(Compare, AModelThatGivesNoNumberIsNotComparable) {
  const Comparison comparison =
      Compare(Output(std::nan("")), Output(1), {.outputs = {{"y", kInfinity}}});
  EXPECT_FALSE(comparison.differs());
  EXPECT_FALSE(comparison.agrees());
  EXPECT_EQ(comparison.not_comparable.size(), 1u);
}

TEST(Compare, AgreesIfAnyTensorIsComparable) {
  StepValues expected = Output(1);
  expected.outputs["of nothing"] = Array<double>({4}, std::nan(""));
  const StepBounds bounds{.outputs = {{"y", 1e-6}, {"of nothing", kInfinity}}};
  const Comparison comparison = Compare(expected, expected, bounds);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.not_comparable, std::vector<std::string>{"output of nothing"});
}

// Masks: equal infinities are no difference, and no part of a norm.
TEST(Compare, WhatStandsForInfinityDiffersFromNumbersOnly) {
  constexpr double kLeast = std::numeric_limits<float>::lowest();
  const auto masked = [](double mask, double value) {
    StepValues values = Output(value);
    values.outputs["y"].data[1] = mask;
    return values;
  };
  const StepBounds bounds{.outputs = {{"y", 1e-3}}};
  for (const double mask : {-kInfinity, kLeast}) {
    for (const double other : {-kInfinity, kLeast}) {
      const Comparison comparison = Compare(masked(mask, 1), masked(other, 1 + 1e-5), bounds);
      EXPECT_TRUE(comparison.agrees());
      EXPECT_NEAR(comparison.outputs.at("y").norm, std::sqrt(3.0), 1e-12);
      EXPECT_FALSE(Compare(masked(mask, 1), masked(other, 1.1), bounds).agrees());
    }
    for (const double other : {kInfinity, -kLeast, 1.0, -1e30, std::nan("")}) {
      EXPECT_TRUE(Compare(masked(mask, 1), masked(other, 1), bounds).differs()) << other;
    }
  }
  EXPECT_TRUE(Compare(Output(-kInfinity), Output(-kInfinity), {}).agrees());
}

TEST(Compare, TheWorstIsNearestToItsBound) {
  StepValues expected = Output(1), actual = Output(1.1);
  expected.gradients["w"] = Array<double>({4}, 1e-3);
  actual.gradients["w"] = Array<double>({4}, 1.0001e-3);
  const Comparison comparison =
      Compare(expected, actual, {.outputs = {{"y", 1}}, .gradients = {{"w", 1e-7}}});
  EXPECT_EQ(comparison.worst, "gradient of w");
  EXPECT_FALSE(comparison.agrees());
  EXPECT_NEAR(comparison.max_rel_error, 0.1, 1e-9);
}

}  // namespace
}  // namespace isomer
