// Stages on unlike devices: of other speed, or of other memory.
#include "optimizer/sharding/stage_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(UnevenStageCut, AFasterStageHasMoreCalls) {
  const std::vector<double> slow(8, 3), fast(8, 1);
  const std::vector<int64_t> crossing(8, 1);
  EXPECT_THAT(CutStages({{fast}, {slow}}, crossing), ElementsAre(0, 6));
  EXPECT_THAT(CutStages({{slow}, {fast}}, crossing), ElementsAre(0, 2));
}

TEST(UnevenStageCut, AStageHasNoMoreThanItHolds) {
  const std::vector<double> us(8, 1);
  const std::vector<int64_t> crossing(8, 1), bytes(8, 10);
  EXPECT_THAT(CutStages({{us, bytes, 100}, {us, bytes, 29}}, crossing), ElementsAre(0, 6));
  EXPECT_THAT(CutStages({{us, bytes, 10}, {us, bytes, 100}}, crossing), ElementsAre(0, 1));
  EXPECT_THAT(CutStages({{us, bytes, 29}, {us, bytes, 29}}, crossing), IsEmpty());
}

// The time of the slowest stage, or kNever if one holds too little.
double BottleneckOf(const std::vector<StageCosts>& stages, std::vector<int> first) {
  const int count = static_cast<int>(stages[0].us.size());
  first.push_back(count);
  double slowest = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    double us = 0;
    int64_t bytes = 0;
    for (int i = first[s]; i < first[s + 1]; ++i) {
      us += stages[s].us[i];
      bytes += stages[s].bytes[i];
    }
    if (bytes > stages[s].most_bytes) return kNever;
    slowest = std::max(slowest, us);
  }
  return slowest;
}

double LeastOfAllCuts(const std::vector<StageCosts>& stages) {
  const int count = static_cast<int>(stages[0].us.size());
  double least = kNever;
  std::vector<int> first = {0};
  const std::function<void()> extend = [&] {
    if (first.size() == stages.size()) {
      least = std::min(least, BottleneckOf(stages, first));
      return;
    }
    for (int next = first.back() + 1; next < count; ++next) {
      first.push_back(next);
      extend();
      first.pop_back();
    }
  };
  extend();
  return least;
}

TEST(UnevenStageCut, IsAsGoodAsTheBestOfAllCuts) {
  constexpr unsigned kSeed = 34;
  std::mt19937 random(kSeed);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  int impossible = 0;
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    const int64_t stages = draw(2, 4), calls = draw(stages, 9);
    std::vector<std::vector<double>> us(stages);
    std::vector<int64_t> bytes, crossing;
    for (int64_t i = 0; i < calls; ++i) {
      bytes.push_back(draw(1, 10));
      crossing.push_back(draw(0, 5));
      const double work = static_cast<double>(draw(1, 20));
      // Some calls gain less by a fast device than others.
      for (auto& of_stage : us) of_stage.push_back(work / static_cast<double>(draw(1, 4)));
    }
    std::vector<StageCosts> costs;
    for (const auto& of_stage : us) costs.push_back({of_stage, bytes, draw(5, 60)});
    const double least = LeastOfAllCuts(costs);
    const std::vector<int> cut = CutStages(costs, crossing);
    if (least == kNever) {
      EXPECT_THAT(cut, IsEmpty());
      ++impossible;
      continue;
    }
    ASSERT_EQ(static_cast<int64_t>(cut.size()), stages);
    // A twentieth for what crosses; a tenth where a stage must have a call that it is bad at.
    EXPECT_LE(BottleneckOf(costs, cut), 1.05 * 1.1 * least);
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 400);
}

}  // namespace
}  // namespace isomer
