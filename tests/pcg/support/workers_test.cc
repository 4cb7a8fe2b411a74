// Work in processes and in threads: nothing lost, nothing out of order, deaths reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "pcg/support/in_order.h"
#include "pcg/support/process_pool.h"

namespace isomer {
namespace {

using ::testing::HasSubstr;

TEST(ProcessPool, EveryItemOnceWithItsResult) {
  for (int jobs : {1, 2, 5}) {
    std::set<size_t> items;
    // Results from empty to larger than a pipe's buffer.
    auto result = [](size_t item) { return std::string(item * item * 3, 'x'); };
    const absl::Status status = ForEachInProcesses(
        jobs, 200, [&]() -> ItemWorker { return result; },
        [&](size_t item, const std::string& bytes) {
          EXPECT_TRUE(items.insert(item).second) << item;
          EXPECT_EQ(bytes, result(item)) << item;
        });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(items.size(), 200u);
  }
}

TEST(ProcessPool, NothingToDo) {
  const absl::Status status = ForEachInProcesses(
      3, 0, []() -> ItemWorker { return [](size_t) { return std::string(); }; },
      [](size_t, const std::string&) { ADD_FAILURE(); });
  EXPECT_TRUE(status.ok());
}

TEST(ProcessPool, ADeathNamesTheItemAndTheOthersAreDone) {
  std::set<size_t> items;
  const absl::Status status = ForEachInProcesses(
      2, 50,
      []() -> ItemWorker {
        return [](size_t item) {
          if (item == 7) raise(SIGKILL);
          return std::to_string(item);
        };
      },
      [&](size_t item, const std::string&) { items.insert(item); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("a process died at item 7 (Killed)"));
  EXPECT_EQ(items.size(), 49u);
}

TEST(InOrder, ResultsComeInOrderForAnyNumberOfThreads) {
  for (int jobs : {1, 2, 7}) {
    for (size_t ahead : {1u, 3u, 1000u}) {
      InOrder<std::string> results(jobs, 500, ahead, [] {
        return [](size_t item) {
          if (item % 50 == 0) usleep(1000);
          return std::to_string(item);
        };
      });
      for (size_t i = 0; i < 500; ++i) ASSERT_EQ(results.Take(), std::to_string(i));
    }
  }
}

TEST(InOrder, MayBeGivenUpAtAnyPoint) {
  for (size_t taken = 0; taken < 20; ++taken) {
    InOrder<int> results(3, 20, 4,
                         [] { return [](size_t item) { return static_cast<int>(item); }; });
    for (size_t i = 0; i < taken; ++i) EXPECT_EQ(results.Take(), static_cast<int>(i));
  }
}

}  // namespace
}  // namespace isomer
