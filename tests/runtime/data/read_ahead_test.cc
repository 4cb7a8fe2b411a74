#include "runtime/data/read_ahead.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

HostValues Numbered(int64_t step) {
  Array<double> array({1});
  array.data[0] = static_cast<double>(step);
  return {{"x", array}};
}

double NumberIn(const absl::StatusOr<HostValues>& batch) {
  return batch.ok() ? batch->at("x").data[0] : -1;
}

TEST(ReadAhead, GivesWhatIsAskedForInAnyOrder) {
  ReadAhead ahead([](int64_t step) { return Numbered(step); }, 2);
  for (int64_t step : {0, 1, 2, 3, 10, 11, 4, 4, 5, 1000000}) {
    EXPECT_EQ(NumberIn(ahead.Take(step)), step);
  }
  EXPECT_EQ(ahead.waits_us().size(), 10);
}

TEST(ReadAhead, AnErrorIsThatOfItsStep) {
  ReadAhead ahead(
      [](int64_t step) -> absl::StatusOr<HostValues> {
        if (step == 3) return absl::InvalidArgumentError("row 3");
        return Numbered(step);
      },
      2);
  for (int64_t step : {0, 1, 2}) EXPECT_EQ(NumberIn(ahead.Take(step)), step);
  EXPECT_EQ(ahead.Take(3).status().message(), "row 3");
  EXPECT_EQ(NumberIn(ahead.Take(4)), 4);
}

TEST(ReadAhead, MakesTheNextWhileAStepRunsAndNoMoreThanItMay) {
  std::atomic<int> made = 0;
  ReadAhead ahead(
      [&](int64_t step) {
        ++made;
        return Numbered(step);
      },
      2);
  ASSERT_TRUE(ahead.Take(0).ok());
  for (int tries = 0; made < 3 && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, 3);
}

TEST(ReadAhead, EndsWithoutBeingAsked) {
  ReadAhead never([](int64_t step) { return Numbered(step); }, 2);
  ReadAhead once([](int64_t step) { return Numbered(step); }, 2);
  ASSERT_TRUE(once.Take(5).ok());
}

}  // namespace
}  // namespace isomer
