// Schedules against numbers that PyTorch's learning rate schedulers give.
#include "runtime/execution/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using Shape = LearningRate::Shape;

void ExpectRates(const LearningRate::Options& options, int64_t steps,
                 const std::vector<double>& expected) {
  auto rate = LearningRate::Make(options);
  ASSERT_TRUE(rate.ok()) << rate.status();
  ASSERT_EQ(rate->SetSteps(steps), absl::OkStatus());
  for (size_t s = 0; s < expected.size(); ++s) {
    EXPECT_NEAR(rate->At(static_cast<int64_t>(s)), expected[s], 1e-15) << s;
  }
}

// SequentialLR([LinearLR(start_factor=1/4, total_iters=3), ..], milestones=[4]) of torch 2.
TEST(LearningRate, IsAsPyTorchHasIt) {
  const LearningRate::Options warm = {.peak = 0.1, .warmup_steps = 4};
  LearningRate::Options options = warm;
  ExpectRates(options, 8, {0.025, 0.05, 0.075, 0.1, 0.1, 0.1, 0.1, 0.1});
  options.shape = Shape::kInverseSqrt;
  ExpectRates(options, 10,
              {0.025, 0.05, 0.075, 0.1, 0.08944271909999159, 0.08164965809277261,
               0.07559289460184544, 0.07071067811865477, 0.06666666666666667, 0.0632455532033676});
  options.final_rate = 0.1;
  options.shape = Shape::kLinear;
  // Behind the decay the rate stays.
  ExpectRates(options, 12,
              {0.025, 0.05, 0.075, 0.1, 0.1, 0.08875, 0.0775, 0.06625, 0.055, 0.04375, 0.0325,
               0.02125, 0.01, 0.01, 0.01});
  options.shape = Shape::kCosine;
  ExpectRates(
      options, 12,
      {0.025, 0.05, 0.075, 0.1, 0.1, 0.09657457896300789, 0.08681980515339463, 0.07222075445642903,
       0.055, 0.037779245543570955, 0.023180194846605363, 0.013425421036992099, 0.01, 0.01});
  // What was said of the decay holds, whatever the run.
  options.decay_steps = 12;
  ExpectRates(options, 100, {0.025, 0.05, 0.075, 0.1, 0.1, 0.09657457896300789});
  ExpectRates({.shape = Shape::kLinear, .peak = 0.1}, 5, {0.1, 0.08, 0.06, 0.04, 0.02, 0, 0});
}

TEST(LearningRate, IsReadFromAFile) {
  const auto rate = LearningRate::FromText("# step rate\n3 0.1\n\n5\t0.3 # up\r\n6 0\n");
  ASSERT_TRUE(rate.ok()) << rate.status();
  const double expected[] = {0.1, 0.1, 0.1, 0.2, 0.3, 0, 0, 0};
  for (int s = 0; s < 8; ++s) EXPECT_NEAR(rate->At(s), expected[s], 1e-15) << s;
  const auto one = LearningRate::FromText("1 0.5");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->At(1000000), 0.5);
}

TEST(LearningRate, RefusesFilesThatSayNothing) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "there is no learning rate"},
           {"# nothing\n", "there is no learning rate"},
           {"1 0.1\n2", "line 2: a step, from 1, and its learning rate are expected"},
           {"0 0.1", "line 1: a step, from 1"},
           {"-1 0.1", "line 1: a step, from 1"},
           {"1.5 0.1", "line 1: a step, from 1"},
           {"1 0.1 0.2", "line 1: a step, from 1"},
           {"99999999999999999999 0.1", "line 1: a step, from 1"},
           {"1 0.1\n1 0.2", "line 2: step 1 does not follow step 1"},
           {"7 0.1\n3 0.2", "line 2: step 3 does not follow step 7"},
           {"1 -0.1", "line 1: a learning rate is at least 0, and finite"},
           {"1 nan", "line 1: a learning rate is at least 0, and finite"},
           {"1 inf", "line 1: a learning rate is at least 0, and finite"},
           {"1 1e39", "line 1: a learning rate is at least 0, and finite"},
           {std::string("1 0.1\n\0 2", 9), "line 2: a step, from 1"}}) {
    EXPECT_THAT(LearningRate::FromText(text).status().message(), HasSubstr(why)) << text;
  }
  EXPECT_FALSE(LearningRate::FromFile(testing::TempDir() + "/no_such_schedule").ok());
}

TEST(LearningRate, RefusesWhatIsNone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double peak : {-1.0, kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e39}) {
    EXPECT_THAT(LearningRate::Make({.peak = peak}).status().message(), HasSubstr("--learning_rate"))
        << peak;
  }
  for (double last : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(LearningRate::Make({.final_rate = last}).status().message(),
                HasSubstr("--final_rate"));
  }
  EXPECT_FALSE(LearningRate::Make({.warmup_steps = -1}).ok());
  EXPECT_FALSE(LearningRate::Make({.decay_steps = -1}).ok());
  EXPECT_THAT(LearningRate::Make({.shape = Shape::kCosine, .warmup_steps = 4, .decay_steps = 4})
                  .status()
                  .message(),
              HasSubstr("--warmup_steps=4: the decay is over at step 4; fewer are expected"));
  auto rate = LearningRate::Make({.shape = Shape::kLinear, .warmup_steps = 40});
  ASSERT_TRUE(rate.ok());
  EXPECT_FALSE(rate->SetSteps(40).ok());
  // What does not decay may end within its warm-up.
  auto constant = LearningRate::Make({.warmup_steps = 40});
  ASSERT_TRUE(constant.ok());
  EXPECT_EQ(constant->SetSteps(10), absl::OkStatus());
  EXPECT_NEAR(constant->At(9), 0.025, 1e-15);
}

}  // namespace
}  // namespace isomer
