#include "pcg/ir/expert_room.h"

#include "gtest/gtest.h"

namespace isomer {
namespace {

TEST(ExpertRoom, IsOfTheLargestLoadButNoMoreThanAllTokens) {
  const ExpertRoom room = {.tokens = 40, .experts = 16, .choices = 4};
  EXPECT_EQ(room.even_load(), 10);
  EXPECT_EQ(room.CapacityFor(1), 10);
  EXPECT_EQ(room.CapacityFor(1.1), 11);  // though 1.1 * 10 is 11.000000000000002
  EXPECT_EQ(room.CapacityFor(1.11), 12);
  EXPECT_EQ(room.CapacityFor(4), 40);
  EXPECT_EQ(room.CapacityFor(16), 40);
  EXPECT_EQ((ExpertRoom{.tokens = 2, .experts = 64, .choices = 1}.CapacityFor(1)), 1);
}

TEST(ExpertRoom, IsThatOfTheCall) {
  const ExpertRoom routed = ExpertRoomOf(
      Operator(OpKind::kTopKRouting, {{"k", int64_t{4}}, {"capacity", int64_t{12}}}), {2, 40, 16});
  EXPECT_EQ(routed.tokens, 40);
  EXPECT_EQ(routed.experts, 16);
  EXPECT_EQ(routed.choices, 4);
  EXPECT_EQ(routed.capacity, 12);
  const ExpertRoom top2 =
      ExpertRoomOf(Operator(OpKind::kTop2Gating, {{"capacity", int64_t{5}}}), {2, 6, 3});
  EXPECT_EQ(top2.even_load(), 4);
}

TEST(ExpertRoom, AssumptionsReadBack) {
  for (double imbalance : {1.0, 1.25, 1.1, 7.0 / 3}) {
    Model model;
    model.assumptions = {"another", ImbalanceAssumption(imbalance)};
    EXPECT_EQ(AssumedImbalance(model), imbalance);
  }
  EXPECT_EQ(ImbalanceAssumption(1.1),
            "no expert gets more than 1.1 times its even share of a group's tokens");
  EXPECT_EQ(ParseImbalance("no expert gets more"), 0);
  EXPECT_EQ(AssumedImbalance(Model()), 0);
  EXPECT_EQ(ParseImbalance("no expert gets more than 0.5 times its even share of a group's tokens"),
            0);
}

}  // namespace
}  // namespace isomer
