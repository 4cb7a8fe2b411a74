#include "runtime/launch/restarts.h"

#include "gtest/gtest.h"

namespace isomer {
namespace {

TEST(Restarts, AreAsManyAsAskedFor) {
  Restarts restarts(2);
  EXPECT_EQ(restarts.Failed(10), "");
  EXPECT_EQ(restarts.Failed(20), "");
  EXPECT_EQ(restarts.so_far(), 2);
  EXPECT_EQ(restarts.Failed(30), "it was started again 2 times");
  Restarts none(0);
  EXPECT_EQ(none.Failed(10), "it is not to be started again");
}

TEST(Restarts, EndWhereNothingComesOfThem) {
  Restarts restarts(100);
  EXPECT_EQ(restarts.Failed(10), "");
  EXPECT_EQ(restarts.Failed(10), "");
  EXPECT_EQ(restarts.Failed(15), "");  // It came further.
  EXPECT_EQ(restarts.Failed(15), "");
  EXPECT_EQ(restarts.Failed(15), "it failed 3 times behind step 15 without coming further");
}

}  // namespace
}  // namespace isomer
