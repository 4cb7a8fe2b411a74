// Work in processes: nothing lost, deaths reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <set>

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

}  // namespace
}  // namespace isomer
