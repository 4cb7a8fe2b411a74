#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LogSoftmax, IsTheLogarithmOfSoftmax) {
  const Tensor x = Random({3, 4, 5}, 1);
  ExpectClose(OutputOf("log_softmax(axis=1)", {x}),
              OutputOf("log", {OutputOf("softmax(axis=1)", {x})}));
}

TEST(LogSoftmax, IsFiniteWhereSoftmaxIsZero) {
  EXPECT_THAT(OutputOf("log_softmax", {Filled({2}, {2000, -2000})}).data, ElementsAre(0, -4000));
}

TEST(RmsNorm, ByHand) {
  const Tensor y =
      OutputOf("rms_norm(epsilon=0.5)", {Filled({1, 2}, {1, -2}), Filled({2}, {10, 100})});
  const double root = std::sqrt((1.0 + 4.0) / 2 + 0.5);
  EXPECT_NEAR(y.data[0], 10 / root, 1e-12);
  EXPECT_NEAR(y.data[1], -200 / root, 1e-12);
  EXPECT_THAT(ErrorOf("rms_norm(epsilon=0.5)", {{4, 6}, {4}}), HasSubstr("dim h is 6"));
}

TEST(GroupNorm, OfOneChannelEachIsInstanceNorm) {
  const Tensor x = Random({2, 3, 4}, 1), gamma = Random({3}, 2), beta = Random({3}, 3);
  const Tensor y = OutputOf("group_norm(groups=3,epsilon=0.25)", {x, gamma, beta});
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      const double* row = &x.data[(n * 3 + c) * 4];
      const double mean = (row[0] + row[1] + row[2] + row[3]) / 4;
      double variance = 0;
      for (int64_t i = 0; i < 4; ++i) variance += (row[i] - mean) * (row[i] - mean) / 4;
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(y.data[(n * 3 + c) * 4 + i],
                    (row[i] - mean) / std::sqrt(variance + 0.25) * gamma.data[c] + beta.data[c],
                    1e-12);
      }
    }
  }
}

TEST(GroupNorm, OfAllChannelsIsLayerNormOfTheSample) {
  Tensor x = Random({2, 4, 3}, 1);
  const Tensor one = Filled({4}, {1, 1, 1, 1}), zero({4});
  const Tensor y = OutputOf("group_norm(groups=1,epsilon=0.25)", {x, one, zero});
  x.shape = {2, 12};
  x.origin.resize(2);
  Tensor expected = OutputOf("layer_norm(epsilon=0.25)", {x, Tensor({12}, 1.0), Tensor({12})});
  expected.shape = y.shape;
  ExpectClose(y, expected);
}

TEST(GroupNorm, PartitionsSamplesAndGroups) {
  EXPECT_THAT(
      PartitionableDims(*DeclareText("group_norm(groups=2,epsilon=0.25)", {{2, 4, 3}, {4}, {4}})),
      ElementsAre("n", "g"));
  EXPECT_THAT(ErrorOf("group_norm(groups=3,epsilon=0.25)", {{2, 4, 3}, {4}, {4}}),
              HasSubstr("4 channels do not divide into 3 groups"));
}

TEST(BatchNormTraining, IsInferenceWithTheStatisticsItReturns) {
  const Tensor x = Random({4, 3, 2, 2}, 1), gamma = Random({3}, 2), beta = Random({3}, 3);
  const std::vector<Tensor> y = OutputsOf("batch_norm_training(epsilon=0.25)", {x, gamma, beta});
  ASSERT_EQ(y.size(), 3u);
  ExpectClose(y[0], OutputOf("batch_norm(epsilon=0.25)", {x, gamma, beta, y[1], y[2]}));
  const Tensor mean = OutputOf("reduce_mean(axes=[0,2,3],keepdims=0)", {x});
  ExpectClose(y[1], mean);
  const Tensor squares =
      OutputOf("reduce_mean(axes=[0,2,3],keepdims=0)", {OutputOf("mul", {x, x})});
  ExpectClose(y[2], OutputOf("sub", {squares, OutputOf("mul", {mean, mean})}));
}

}  // namespace
}  // namespace isomer
