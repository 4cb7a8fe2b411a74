#include "runtime/logging/csv_log.h"

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "runtime/logging/step_record.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

// Of nothing yet.
std::string FreshLogPath(const std::string& name) {
  std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

using testing::HasSubstr;

void AddRows(const std::string& path, int64_t from, int64_t to, std::optional<int64_t> first_step) {
  const auto log = CsvLog::Open(path, {"loss", "test_loss"}, first_step);
  ASSERT_EQ(log.status(), absl::OkStatus());
  for (int64_t step = from; step <= to; ++step) {
    ASSERT_EQ((*log)->Add(step, {1.0 / static_cast<double>(step), std::nullopt}), absl::OkStatus());
  }
}

TEST(CsvLog, HasALineOfNamesAndARowAStep) {
  const std::string path = FreshLogPath("log.csv");
  AddRows(path, 1, 2, std::nullopt);
  EXPECT_EQ(*ReadFile(path), "step,loss,test_loss\n1,1,\n2,0.5,\n");
  // A training that begins anew has a log of its own.
  AddRows(path, 4, 4, std::nullopt);
  EXPECT_EQ(*ReadFile(path), "step,loss,test_loss\n4,0.25,\n");
}

TEST(CsvLog, GoesOnWithoutLosingOrRepeatingRows) {
  const std::string path = FreshLogPath("resumed.csv"), whole = FreshLogPath("whole.csv");
  AddRows(whole, 1, 10, std::nullopt);
  AddRows(path, 1, 7, std::nullopt);
  // The run was killed while it wrote; the checkpoint is of step 5.
  ASSERT_EQ(WriteFileAtomically(path, absl::StrCat(*ReadFile(path), "8,0.1")), absl::OkStatus());
  AddRows(path, 6, 10, 5);
  EXPECT_EQ(*ReadFile(path), *ReadFile(whole));
}

TEST(CsvLog, WhatIsAnotherTableIsRefused) {
  const auto error = [](const std::string& path) {
    return std::string(CsvLog::Open(path, {"loss"}, 3).status().message());
  };
  EXPECT_THAT(error(MadeFile("other.csv", "step,accuracy\n1,2\n")),
              HasSubstr("has the columns 'step,accuracy', and this run 'step,loss'"));
  EXPECT_THAT(error(MadeFile("no_row.csv", "step,loss\n1,2\nx\n")), HasSubstr("no_row.csv:3"));
  // None yet.
  EXPECT_EQ(error(FreshLogPath("none.csv")), "");
}

TEST(StepRecord, ForPeople) {
  const StepRecord record = {.step = 20,
                             .loss = 0.5,
                             .learning_rate = 0.01,
                             .step_us = 100,
                             .samples_per_s = 1000,
                             .flops_per_s = 2.5e9,
                             .mfu = 0.125,
                             .data_wait_us = 0.1,
                             .resident_bytes = 3e6};
  EXPECT_EQ(record.ToString(),
            "step 20: loss 0.5, learning rate 0.01, 1000 samples/s, 2.5 GFLOP/s, 12.5 % MFU, 3 MB "
            "resident, 100 us a step");
  StepRecord waits = {.step = 1, .step_us = 100, .tokens_per_s = 5, .data_wait_us = 50};
  EXPECT_EQ(waits.ToString(), "step 1: 5 tokens/s, 0.050 ms for data, 100 us a step");
}

}  // namespace
}  // namespace isomer
