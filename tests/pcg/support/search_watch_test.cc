#include "pcg/support/search_watch.h"

#include <limits>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "pcg/support/stopping.h"

namespace isomer {
namespace {

TEST(SearchWatch, EndsItsOwnSearchAlone) {
  SearchWatch mine, other;
  const Deadline ended = Deadline::In(0, &mine), goes_on = Deadline::In(0, &other);
  EXPECT_FALSE(ended.Reached().has_value());
  mine.End();
  EXPECT_EQ(ended.Reached(), StopReason::kInterrupted);
  EXPECT_FALSE(goes_on.Reached().has_value());
  EXPECT_FALSE(Deadline().Reached().has_value());
}

TEST(SearchWatch, KnowsTheBestPlanOfAllThreads) {
  SearchWatch watch;
  EXPECT_EQ(watch.best_step_us(), std::numeric_limits<double>::infinity());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&watch, t] {
      for (int i = 0; i < 1000; ++i) watch.Count(1 + (i * 7 + t) % 1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  watch.Count(std::numeric_limits<double>::infinity());  // does not fit
  EXPECT_EQ(watch.plans(), 4001);
  EXPECT_EQ(watch.best_step_us(), 1);
}

}  // namespace
}  // namespace isomer
