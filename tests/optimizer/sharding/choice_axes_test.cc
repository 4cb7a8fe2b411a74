#include "optimizer/sharding/choice_axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace isomer {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::vector<SplitDim> LargeDims(int count) {
  std::vector<SplitDim> dims;
  for (int i = 0; i < count; ++i) dims.push_back({i, int64_t{1} << 20});
  return dims;
}

TEST(ChoiceAxes, UseAllDevicesAndEachDimOnce) {
  for (int64_t devices : {2, 6, 48, 64, 1024, 16384}) {
    const auto lists = EnumerateAxes({{0, 48}, {1, 1 << 14}, {2, 96}},
                                     {.num_devices = devices, .units = {8, devices}});
    for (const auto& axes : lists) {
      int64_t product = 1;
      std::set<int> dims;
      for (const Axis& axis : axes) {
        EXPECT_GT(axis.degree, 1);
        product *= axis.degree;
        dims.insert(axis.dim);
      }
      EXPECT_EQ(product, devices);
      EXPECT_EQ(dims.size(), axes.size());
    }
  }
}

TEST(ChoiceAxes, StayBelowTheLimitOnLargeMachines) {
  for (int64_t devices : {1024, 16384}) {
    for (int limit : {48, 192, 400}) {
      const auto lists = EnumerateAxes(
          LargeDims(5), {.num_devices = devices, .limit = limit, .units = {8, devices}});
      EXPECT_LE(static_cast<int>(lists.size()), limit + 40) << devices;
      EXPECT_THAT(lists, Contains(ElementsAre(Axis{0, devices / 8}, Axis{1, 8})));
    }
  }
}

// Above 1,024 devices: else plans have so many digits that no few devices stand for all.
TEST(ChoiceAxes, BordersBetweenNodesAreFarApartOnVeryLargeMachines) {
  std::set<int64_t> borders;
  for (const auto& axes :
       EnumerateAxes(LargeDims(2), {.num_devices = 16384, .units = {8, 16384}})) {
    int64_t at = 1;
    for (size_t i = axes.size(); i-- > 1;) borders.insert(at *= axes[i].degree);
  }
  EXPECT_THAT(borders, ElementsAre(2, 4, 8, 128, 2048));
}

TEST(ChoiceAxes, OneDeviceAndOneNodeAreChoices) {
  const auto lists = EnumerateAxes({{0, 64}}, {.num_devices = 16, .units = {4, 16}});
  EXPECT_THAT(lists, Contains(ElementsAre(Axis{kIdleAxis, 16})));
  EXPECT_THAT(lists, Contains(ElementsAre(Axis{kIdleAxis, 4}, Axis{0, 4})));
  EXPECT_THAT(lists, Contains(ElementsAre(Axis{0, 16})));
}

TEST(ChoiceAxes, ADimThatIsTooShortLeavesDevicesIdle) {
  const auto lists = EnumerateAxes({{0, 4}}, {.num_devices = 16});
  EXPECT_THAT(lists, Contains(ElementsAre(Axis{0, 4}, Axis{kIdleAxis, 4})));
}

TEST(ChoiceAxes, ThinningKeepsTheEnds) {
  EXPECT_THAT(Thinned({2, 4, 8, 16, 32, 64, 128}, 3), ElementsAre(2, 16, 128));
  EXPECT_THAT(Thinned({2, 4}, 3), ElementsAre(2, 4));
  EXPECT_THAT(Thinned({2, 4, 8}, 1), ElementsAre(4));
}

}  // namespace
}  // namespace isomer
