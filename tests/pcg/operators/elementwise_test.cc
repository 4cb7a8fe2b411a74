#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Broadcasting, OfThreeOperands) {
  const Tensor condition = Filled({2, 1}, {1, 0});
  const Tensor a = Filled({3}, {1, 2, 3}), b = Filled({2, 2, 3}, std::vector<double>(12, -1));
  const Tensor y = OutputOf("where", {condition, a, b});
  EXPECT_THAT(y.shape, ElementsAre(2, 2, 3));
  EXPECT_THAT(y.data, ElementsAre(1, 2, 3, -1, -1, -1, 1, 2, 3, -1, -1, -1));
  EXPECT_THAT(OutputOf("where", {condition, Filled({}, {5}), Filled({1, 1}, {6})}).data,
              ElementsAre(5, 6));
}

TEST(Broadcasting, NamesTheOperandsThatDisagree) {
  EXPECT_THAT(ErrorOf("where", {{4, 1}, {6}, {5}}), HasSubstr("i1 is 6 in operand 1 and 5"));
  EXPECT_THAT(ErrorOf("where", {{4, 1}, {6}, {3, 6}}), HasSubstr("i0 is 4 in operand 0 and 3"));
  EXPECT_THAT(ErrorOf("add", {{4, 6}, {4}}), HasSubstr("i1 is 6 in operand 0 and 4"));
}

TEST(Where, PassesPartialsOfBothChoicesThrough) {
  const Declaration d = *DeclareText("where", {{4}, {4}, {4}});
  EXPECT_TRUE(d.IsLinearIn({false, true, true}));
  EXPECT_FALSE(d.IsLinearIn({false, true, false}));
  EXPECT_FALSE(d.IsLinearIn({true, true, true}));
}

TEST(Comparison, OfNumbersThatAreNone) {
  const Tensor a = Filled({3}, {std::nan(""), 1, 2}), b = Filled({3}, {1, 1, 1});
  EXPECT_THAT(OutputOf("less_equal", {a, b}).data, ElementsAre(0, 1, 0));
  EXPECT_THAT(OutputOf("less", {b, a}).data, ElementsAre(0, 0, 1));
  EXPECT_THAT(OutputOf("equal", {a, b}).data, ElementsAre(0, 1, 0));
}

TEST(Round, HalvesGoToEven) {
  EXPECT_THAT(OutputOf("round", {Filled({6}, {-2.5, -1.5, -0.4, 0.5, 1.5, 2.6})}).data,
              ElementsAre(-2, -2, 0, 0, 2, 3));
}

}  // namespace
}  // namespace isomer
