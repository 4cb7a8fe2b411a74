#include "runtime/evaluation/early_stopping.h"

#include <limits>

#include "gtest/gtest.h"

namespace isomer {
namespace {

TEST(EarlyStopping, StopsAfterSoManyTestsWithoutABetterOne) {
  EarlyStopping stopping(2, /*more_is_better=*/false);
  EXPECT_TRUE(stopping.Add(10, 1.0));
  EXPECT_FALSE(stopping.Add(20, 1.0));  // As good is not better.
  EXPECT_FALSE(stopping.ShouldStop());
  EXPECT_TRUE(stopping.Add(30, 0.5));
  EXPECT_FALSE(stopping.Add(40, 0.6));
  EXPECT_FALSE(stopping.Add(50, 0.7));
  EXPECT_TRUE(stopping.ShouldStop());
  EXPECT_EQ(stopping.state().best_step, 30);
  EXPECT_EQ(stopping.state().best, 0.5);
}

TEST(EarlyStopping, OfWhatShouldGrow) {
  EarlyStopping stopping(1, /*more_is_better=*/true);
  EXPECT_TRUE(stopping.Add(1, 0.1));
  EXPECT_TRUE(stopping.Add(2, 0.2));
  EXPECT_FALSE(stopping.Add(3, 0.1));
  EXPECT_TRUE(stopping.ShouldStop());
}

TEST(EarlyStopping, WhatIsNoNumberIsNeverTheBest) {
  EarlyStopping stopping(3, /*more_is_better=*/false);
  EXPECT_FALSE(stopping.Add(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(stopping.state().best_step, -1);
  EXPECT_TRUE(stopping.Add(2, 5));
}

TEST(EarlyStopping, GoesOnFromItsState) {
  EarlyStopping before(2, false), after(2, false);
  before.Add(1, 1);
  before.Add(2, 2);
  after.set_state(before.state());
  EXPECT_FALSE(after.Add(3, 1.5));
  EXPECT_TRUE(after.ShouldStop());
}

TEST(EarlyStopping, WithoutPatienceItOnlyRemembers) {
  EarlyStopping stopping(0, false);
  stopping.Add(1, 1);
  for (int step = 2; step < 20; ++step) stopping.Add(step, 2);
  EXPECT_FALSE(stopping.ShouldStop());
  EXPECT_EQ(stopping.state().best_step, 1);
}

}  // namespace
}  // namespace isomer
