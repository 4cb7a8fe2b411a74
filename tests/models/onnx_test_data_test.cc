#include "models/onnx/import/onnx_test_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TensorDistance Distance(const std::vector<float>& expected, const std::vector<double>& got,
                        const TestTolerance& tolerance = {}) {
  const auto size = static_cast<int64_t>(expected.size());
  OnnxTensor tensor;
  tensor.dims = {size};
  tensor.floats = expected;
  Array<double> array({size});
  array.data = got;
  return DistanceFrom(tensor, array, SequentialType({size}, DataType::kFloat32), tolerance);
}

// The second element is what remains of terms of the size of the first.
TEST(OnnxTestData, WhatFloat32RoundsOfTheLargestElementIsNoDifference) {
  const std::vector<float> expected = {5, 0.0001F};
  EXPECT_THAT(Distance(expected, {5, 0.00014}).difference, IsEmpty());
  EXPECT_THAT(Distance(expected, {5, 0.0002}).difference, HasSubstr("[1] is 0.0002, not"));
  EXPECT_THAT(Distance(expected, {5, 0.00014}, {.of_largest = 0}).difference,
              HasSubstr("off by 4e-05 of up to 5; 1 of 2 elements differ"));
}

TEST(OnnxTestData, InfinitiesSayNothingOfTheRest) {
  const std::vector<float> expected = {HUGE_VALF, 0.0001F};
  EXPECT_THAT(Distance(expected, {HUGE_VAL, 0.0001}).difference, IsEmpty());
  EXPECT_THAT(Distance(expected, {HUGE_VAL, 0.0002}).difference, HasSubstr("[1] is 0.0002"));
  EXPECT_THAT(Distance(expected, {1e30, 0.0001}).difference, HasSubstr("[0] is 1e+30"));
}

}  // namespace
}  // namespace isomer
