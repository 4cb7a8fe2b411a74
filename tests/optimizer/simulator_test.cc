#include "optimizer/simulator.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

// 10 -> {15, 20} -> 25
std::vector<TimedTask> Diamond(std::vector<int32_t> queues) {
  return {{10, {queues[0]}, {}},
          {15, {queues[1]}, {0}},
          {20, {queues[2]}, {0}},
          {25, {queues[3]}, {1, 2}}};
}

TEST(Timeline, DiamondOnEnoughDevices) {
  EXPECT_EQ(RunTimeline(Diamond({0, 1, 2, 3})).makespan_us, 55);
}

TEST(Timeline, DiamondOneTaskAtATime) {
  EXPECT_EQ(RunTimeline(Diamond({0, 0, 0, 0})).makespan_us, 70);
}

TEST(Timeline, ACollectiveWaitsForAllItsDevices) {
  const Timeline timeline =
      RunTimeline({{10, {0}, {}}, {30, {2}, {}}, {5, {1, 3}, {0, 1}}, {1, {0}, {}}});
  EXPECT_EQ(timeline.start_us[2], 30);
  EXPECT_EQ(timeline.start_us[3], 10);  // compute goes on beside it
  EXPECT_EQ(timeline.makespan_us, 35);
}

}  // namespace
}  // namespace isomer
