// The log of results: what it keeps, and how it is damaged.
#include "generator/workers/memo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string EmptyFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

std::string Payload(int i) { return std::string(100 + i, static_cast<char>('a' + i % 26)); }

// A folder whose memo holds the payloads 0 to 9 under their numbers.
std::string FolderOfTen(const std::string& name) {
  const std::string folder = EmptyFolder(name);
  auto memo = Memo::Open(folder);
  EXPECT_TRUE(memo.ok()) << memo.status();
  for (int i = 0; i < 10; ++i) (*memo)->Put(MemoKeyOf(std::to_string(i)), Payload(i));
  return folder;
}

// How many of the ten are found as they were; none may be found changed.
int CountFound(Memo* memo) {
  int found = 0;
  for (int i = 0; i < 10; ++i) {
    const auto payload = memo->Find("test", MemoKeyOf(std::to_string(i)));
    if (!payload.has_value()) continue;
    ++found;
    EXPECT_EQ(*payload, Payload(i));
  }
  return found;
}

void Overwrite(const std::string& path, int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << bytes;
}

TEST(Memo, WithoutAFolderKeepsNothing) {
  Memo memo;
  memo.Put(MemoKeyOf("a"), "b");
  EXPECT_FALSE(memo.Find("step", MemoKeyOf("a")).has_value());
  EXPECT_EQ(memo.counts()["step"].misses, 1);
}

TEST(Memo, FindsWhatAnEarlierRunPut) {
  const std::string folder = FolderOfTen("memo_again");
  const auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok()) << memo.status();
  EXPECT_EQ(CountFound(memo->get()), 10);
  EXPECT_EQ((*memo)->counts()["test"].hits, 10);
  EXPECT_THAT((*memo)->notes(), IsEmpty());
}

TEST(Memo, CutAnywhereLosesTheLastRecordsOnly) {
  const std::string log = FolderOfTen("memo_cut") + "/memo.log";
  const std::string whole = *ReadFile(log);
  int before = 0;
  for (size_t size = 0; size < whole.size(); size += 43) {
    const std::string folder = EmptyFolder("memo_cut_part");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/memo.log", std::ios::binary) << whole.substr(0, size);
    int found = 0;
    {
      const auto memo = Memo::Open(folder);
      ASSERT_TRUE(memo.ok()) << size << ": " << memo.status();
      EXPECT_THAT((*memo)->notes(), IsEmpty()) << size;
      found = CountFound(memo->get());
      EXPECT_GE(found, before) << size;
      before = found;
      (*memo)->Put(MemoKeyOf("new"), "after the cut");
    }
    const auto memo = Memo::Open(folder);
    ASSERT_TRUE(memo.ok());
    EXPECT_EQ(CountFound(memo->get()), found) << size;
    EXPECT_TRUE((*memo)->Find("test", MemoKeyOf("new")).has_value()) << size;
  }
  EXPECT_EQ(before, 9);
}

TEST(Memo, DamageInTheMiddleLosesOneRecordAndIsNoted) {
  // In the first record: its marker, its size, its key, its checksum, its payload.
  for (int64_t offset : {16, 24, 30, 33, 50, 70}) {
    const std::string folder = FolderOfTen("memo_damaged");
    Overwrite(folder + "/memo.log", offset, "\xff\x7f");
    const auto memo = Memo::Open(folder);
    ASSERT_TRUE(memo.ok()) << offset << ": " << memo.status();
    EXPECT_EQ(CountFound(memo->get()), 9) << offset;
    EXPECT_THAT((*memo)->notes(), ElementsAre(HasSubstr("140 damaged bytes"))) << offset;
  }
}

TEST(Memo, TwoRunsInOneFolderAreRefused) {
  const std::string folder = FolderOfTen("memo_twice");
  const auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok());
  const pid_t child = fork();
  if (child == 0) {
    const auto second = Memo::Open(folder);
    const bool refused =
        !second.ok() && absl::StrContains(second.status().message(), "another run");
    _exit(refused ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  // The first goes on.
  (*memo)->Put(MemoKeyOf("more"), "more");
  EXPECT_TRUE((*memo)->status().ok());
}

size_t CountLogsOfRanks(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    count += absl::StrContains(entry.path().filename().string(), "memo.rank-");
  }
  return count;
}

// Ranks that know of each other nothing but the folder.
TEST(Memo, TakesOverWhatRanksKept) {
  const std::string folder = EmptyFolder("memo_ranks");
  std::filesystem::create_directories(folder);
  {
    const auto memo = Memo::Open(folder);
    ASSERT_TRUE(memo.ok()) << memo.status();
    (*memo)->Put(MemoKeyOf("0"), Payload(0));
    for (int rank : {1, 2, 2}) {
      const auto log = Memo::OpenLogOfRank(folder, rank);
      ASSERT_TRUE(log.ok()) << log.status();
      for (int i = rank; i < 10; i += rank) (*log)->Put(MemoKeyOf(std::to_string(i)), Payload(i));
    }
    EXPECT_EQ(CountLogsOfRanks(folder), 3u);
  }
  for (int run = 0; run < 2; ++run) {
    const auto memo = Memo::Open(folder);
    ASSERT_TRUE(memo.ok()) << memo.status();
    EXPECT_EQ(CountFound(memo->get()), 10);
    EXPECT_EQ(CountLogsOfRanks(folder), 0u);
  }
}

// The log of a rank that has the payloads 0 to 9.
std::string LogOfTen(const std::string& folder) {
  const auto log = Memo::OpenLogOfRank(folder, 1);
  EXPECT_TRUE(log.ok()) << log.status();
  for (int i = 0; i < 10; ++i) (*log)->Put(MemoKeyOf(std::to_string(i)), Payload(i));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (absl::StrContains(entry.path().filename().string(), "memo.rank-")) return entry.path();
  }
  return "";
}

TEST(Memo, DamageInTheLogOfARankIsNoted) {
  const std::string folder = EmptyFolder("memo_damaged_rank");
  std::filesystem::create_directories(folder);
  Overwrite(LogOfTen(folder), 50, "\xff\x7f");
  const auto memo = Memo::Open(folder);
  ASSERT_TRUE(memo.ok()) << memo.status();
  EXPECT_EQ(CountFound(memo->get()), 9);
  EXPECT_EQ(CountLogsOfRanks(folder), 0u);
  EXPECT_THAT((*memo)->notes(),
              ElementsAre(AllOf(HasSubstr("memo.rank-1."), HasSubstr("140 damaged bytes"))));
}

TEST(Memo, ALogOfARankThatIsNoneStaysAndIsNoted) {
  for (const bool is_other_version : {true, false}) {
    const std::string folder = EmptyFolder("memo_strange_rank");
    std::filesystem::create_directories(folder);
    Overwrite(LogOfTen(folder), is_other_version ? 8 : 0, "\x02");
    const auto memo = Memo::Open(folder);
    ASSERT_TRUE(memo.ok()) << memo.status();
    EXPECT_EQ(CountFound(memo->get()), 0);
    EXPECT_EQ(CountLogsOfRanks(folder), 1u);
    EXPECT_THAT((*memo)->notes(),
                ElementsAre(AllOf(HasSubstr("memo.rank-1."), HasSubstr("is not used"),
                                  HasSubstr(is_other_version ? "version 2" : "no log"))));
  }
}

TEST(Memo, LeavesTheLogOfARankThatHasNotEnded) {
  const std::string folder = FolderOfTen("memo_living_rank");
  int ready[2], over[2];
  ASSERT_EQ(pipe(ready) + pipe(over), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto log = Memo::OpenLogOfRank(folder, 1);
    char byte = 0;
    const bool ok = log.ok() && write(ready[1], "r", 1) == 1 && read(over[0], &byte, 1) == 1;
    _exit(ok ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(Memo::Open(folder).ok());
  EXPECT_EQ(CountLogsOfRanks(folder), 1u);
  ASSERT_EQ(write(over[1], "o", 1), 1);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(Memo::Open(folder).ok());
  EXPECT_EQ(CountLogsOfRanks(folder), 0u);
}

TEST(Memo, WhatIsNoFolderOrNoLogIsNamed) {
  const std::string folder = FolderOfTen("memo_strange"), log = folder + "/memo.log";
  EXPECT_THAT(std::string(Memo::Open(log).status().message()), HasSubstr("memo.log: "));
  Overwrite(log, 8, "\x02");
  EXPECT_THAT(std::string(Memo::Open(folder).status().message()),
              HasSubstr("memo.log: has version 2, not 1"));
  Overwrite(log, 0, "something else");
  EXPECT_THAT(std::string(Memo::Open(folder).status().message()),
              HasSubstr("memo.log: is no log of results"));
  // Refused, not overwritten.
  EXPECT_THAT(*ReadFile(log), HasSubstr("something else"));
}

}  // namespace
}  // namespace isomer
