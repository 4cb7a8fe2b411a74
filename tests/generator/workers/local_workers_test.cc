// Workers of one computer: every item done once, by whoever is left.
#include "generator/workers/local_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "generator/workers/work_queue.h"

namespace isomer {
namespace {

// "repeat" gives its input so many times as it says; "add" adds what was told.
Steps SimpleSteps() {
  Steps steps;
  steps["repeat"] = [](const std::string& input) {
    return StepResult{std::string(std::atoi(input.c_str()), 'x')};
  };
  const auto told = std::make_shared<std::string>();
  steps["tell"] = [told](const std::string& input) {
    *told = input.empty() ? "" : *told + input;
    return StepResult();
  };
  steps["told"] = [told](const std::string&) { return StepResult{*told, /*lasts=*/false}; };
  steps["process"] = [](const std::string&) { return StepResult{absl::StrCat(getpid())}; };
  steps["die"] = [](const std::string&) -> StepResult { std::abort(); };
  return steps;
}

std::unique_ptr<Workers> MakeWorkers(int processes) {
  auto workers = MakeLocalWorkers(processes, SimpleSteps);
  EXPECT_TRUE(workers.ok()) << workers.status();
  return *std::move(workers);
}

std::string ResultOf(Workers* workers, const StepItem& item) {
  workers->Start(1, item);
  const auto finished = workers->Next();
  EXPECT_TRUE(finished.ok()) << finished.status();
  return finished->result.bytes;
}

TEST(WaitingItems, TheFirstInTurnThenTheOthersByCost) {
  WaitingItems waiting;
  const auto other = [](double cost) { return StepItem{"step", "", {}, /*first=*/false, cost}; };
  waiting.Add(1, other(2));
  waiting.Add(2, {"step", ""});
  waiting.Add(3, other(5));
  waiting.Add(4, {"step", ""});
  waiting.Add(5, other(2));
  const WaitingItems::Item again = waiting.Take();
  EXPECT_EQ(again.ticket, 2u);
  waiting.AddAgain(again);
  waiting.AddAgain({6, other(3)});
  std::vector<uint64_t> order;
  while (!waiting.empty()) order.push_back(waiting.Take().ticket);
  EXPECT_THAT(order, testing::ElementsAre(2, 4, 3, 6, 5, 1));
}

TEST(LocalWorkers, EveryItemOnceWithItsResult) {
  for (int processes : {1, 2, 5}) {
    const auto workers = MakeWorkers(processes);
    // From nothing to more than a socket's buffer, both ways.
    const auto size = [](uint64_t ticket) { return ticket * ticket * 30; };
    constexpr uint64_t kItems = 200;
    for (uint64_t ticket = 0; ticket < kItems; ++ticket) {
      workers->Start(ticket, {"repeat",
                              absl::StrCat(size(ticket), std::string(size(ticket), ' ')),
                              {},
                              ticket % 3 != 0});
    }
    std::set<uint64_t> tickets;
    for (uint64_t i = 0; i < kItems; ++i) {
      const auto finished = workers->Next();
      ASSERT_TRUE(finished.ok()) << finished.status();
      EXPECT_TRUE(tickets.insert(finished->ticket).second) << finished->ticket;
      EXPECT_EQ(finished->result.bytes.size(), size(finished->ticket));
      EXPECT_TRUE(finished->result.lasts);
    }
  }
}

TEST(LocalWorkers, FirstItemsComeBeforeTheOthers) {
  const auto workers = MakeWorkers(1);
  workers->Start(1, {"told", "", {}, /*first=*/false});
  workers->Start(2, {"told", "", {}, /*first=*/false});
  workers->Start(3, {"told", ""});
  workers->Start(4, {"told", ""});
  std::vector<uint64_t> order;
  for (int i = 0; i < 4; ++i) order.push_back(workers->Next()->ticket);
  EXPECT_THAT(order, testing::ElementsAre(3, 4, 2, 1));
}

TEST(LocalWorkers, AllKnowWhatWasToldBefore) {
  for (int processes : {1, 3}) {
    const auto workers = MakeWorkers(processes);
    workers->Tell({"tell", "a"}, /*anew=*/true);
    workers->Tell({"tell", "b"}, false);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ResultOf(workers.get(), {"told", ""}), "ab");
    workers->Tell({"tell", ""}, /*anew=*/true);
    workers->Tell({"tell", "c"}, false);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ResultOf(workers.get(), {"told", ""}), "c");
  }
}

TEST(LocalWorkers, AnotherTakesThePlaceOfOneThatWasKilled) {
  const auto made = ChildWorkers::Make(2, SimpleSteps);
  ASSERT_TRUE(made.ok()) << made.status();
  ChildWorkers& workers = **made;
  workers.Tell({"tell", "a"}, true);
  for (int death = 1; death <= 20; ++death) {
    const int victim = std::atoi(ResultOf(&workers, {"process", ""}).c_str());
    // Before, and while, it has items.
    if (death % 2 == 0) kill(victim, SIGKILL);
    for (uint64_t ticket = 0; ticket < 40; ++ticket) workers.Start(ticket, {"told", ""});
    if (death % 2 != 0) kill(victim, SIGKILL);
    std::set<uint64_t> tickets;
    for (int i = 0; i < 40; ++i) {
      const auto finished = workers.Next();
      ASSERT_TRUE(finished.ok()) << finished.status();
      EXPECT_EQ(finished->result.bytes, "a");
      tickets.insert(finished->ticket);
    }
    EXPECT_EQ(tickets.size(), 40u);
    EXPECT_EQ(workers.open(), 0u);
  }
  EXPECT_GT(workers.deaths(), 0);
}

TEST(LocalWorkers, AnItemThatKillsIsAnError) {
  const auto workers = MakeWorkers(2);
  workers->Start(1, {"die", ""});
  const auto finished = workers->Next();
  EXPECT_EQ(finished.status().message(), "a worker died 5 times at an item of die (Aborted)");
}

TEST(WorkQueue, WhatLastsIsDoneOnce) {
  const std::string folder = testing::TempDir() + "/work_queue_memo";
  std::filesystem::remove_all(folder);
  auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok()) << memo.status();
  const auto workers = MakeWorkers(1);
  WorkQueue queue(workers.get(), memo->get());
  for (const bool lasts : {true, false}) {
    const StepItem item{lasts ? "repeat" : "told", "3", MemoKeyOf(lasts ? "a" : "b")};
    int taken = 0;
    const auto take = [&](const std::string&) { return ++taken > 0; };
    queue.Do(item, take);
    EXPECT_EQ(taken, 0);
    EXPECT_TRUE(queue.WaitUntil([&] { return taken == 1; }).ok());
    queue.Do(item, take);
    EXPECT_EQ(taken, lasts ? 2 : 1);
    EXPECT_TRUE(queue.WaitUntil([&] { return taken == 2; }).ok());
  }
  // What is kept and cannot be read is done again, and what is no result is an error.
  int refused = 0;
  queue.Do({"repeat", "3", MemoKeyOf("a")}, [&](const std::string&) { return ++refused > 3; });
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(queue.WaitUntil([&] { return refused > 3; }).message(),
            "a worker gave no result of repeat");
}

}  // namespace
}  // namespace isomer
