#include "pcg/schedule/lowering/weight_homes.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

HeldBoxes On(int64_t first, int64_t count, const Box& box) {
  HeldBoxes held;
  for (int64_t d = first; d < first + count; ++d) held[d] = {box};
  return held;
}
HeldBoxes Rows(int64_t parts) {
  HeldBoxes held;
  for (int64_t d = 0; d < parts; ++d) held[d] = {{{8 / parts * d, 0}, {8 / parts, 4}}};
  return held;
}
const Box kWhole = {{0, 0}, {8, 4}};

TEST(BestHome, WholeCopiesHoldEveryPart) {
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{Rows(4), On(0, 4, kWhole)}), 1u);
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{On(0, 4, kWhole), Rows(4)}), 0u);
}

// On four devices there is a copy for four of eight parts; where the parts are, there is no copy.
TEST(BestHome, CopiesAreOfUseOnTheirOwnDevicesOnly) {
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{Rows(8), On(0, 1, kWhole)}), 1u);
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{Rows(8), On(8, 2, kWhole)}), 1u);
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{On(8, 1, kWhole), Rows(2)}), 0u);
}

TEST(BestHome, OfEqualOnesTheFirst) {
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{On(0, 1, kWhole), On(1, 1, kWhole)}), 0u);
  EXPECT_EQ(BestHome(std::vector<HeldBoxes>{On(1, 1, kWhole), On(0, 1, kWhole)}), 0u);
}

TEST(HeldBoxes, CopiesOnOneDeviceCountOnce) {
  TensorType type = SequentialType({8, 4});
  type.copies = 4;
  const HeldBoxes held = HeldBoxesOf(type, std::vector<int64_t>{0, 0, 1, 1});
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held.at(0), std::vector<Box>{kWhole});
}

}  // namespace
}  // namespace isomer
