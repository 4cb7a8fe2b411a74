// TensorBoard's files: checksums that others computed, and records read back.
#include "runtime/logging/event_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "runtime/logging/crc32c.h"
#include "runtime/logging/event.pb.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

// Of nothing yet.
std::string FreshEventPath(const std::string& name) {
  std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

using testing::HasSubstr;

// RFC 3720, appendix B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, OfPublishedExamples) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32c, MaskedIsRotatedAndShifted) {
  const uint32_t crc = Crc32c("foo");
  const uint32_t masked = MaskedCrc32c("foo");
  EXPECT_NE(masked, crc);
  const uint32_t rotated = masked - 0xa282ead8u;
  EXPECT_EQ((rotated >> 17) | (rotated << 15), crc);
}

std::vector<EventProto> EventsIn(const std::string& path) {
  const auto records = ReadTfRecords(*ReadFile(path));
  EXPECT_EQ(records.status(), absl::OkStatus());
  std::vector<EventProto> events;
  for (const std::string& record : *records)
    EXPECT_TRUE(events.emplace_back().ParseFromString(record));
  return events;
}

TEST(EventFile, IsReadBack) {
  const std::string folder = FreshEventPath("events");
  const auto file = EventFile::Create(folder, std::nullopt);
  ASSERT_EQ(file.status(), absl::OkStatus());
  ASSERT_EQ((*file)->Add(10, {{"train/loss", 0.5}, {"test/accuracy", 0.875}}), absl::OkStatus());
  ASSERT_EQ((*file)->Add(20, {{"train/loss", 0.25}}), absl::OkStatus());
  const std::vector<EventProto> events = EventsIn((*file)->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].step(), 10);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(1).tag(), "test/accuracy");
  EXPECT_EQ(events[1].summary().value(1).simple_value(), 0.875f);
  EXPECT_GT(events[2].wall_time(), 1.6e9);
}

TEST(EventFile, OfATrainingThatGoesOnSaysFromWhere) {
  const std::string folder = FreshEventPath("resumed_events");
  const auto first = EventFile::Create(folder, std::nullopt);
  const auto second = EventFile::Create(folder, 30);
  ASSERT_EQ(second.status(), absl::OkStatus());
  EXPECT_NE((*first)->path(), (*second)->path());
  const std::vector<EventProto> events = EventsIn((*second)->path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].session_log().status(), SessionLogProto::START);
  EXPECT_EQ(events[1].step(), 31);
}

TEST(TfRecords, DamageIsFound) {
  const std::string file = absl::StrCat(TfRecord("one"), TfRecord(""), TfRecord("three"));
  ASSERT_EQ(ReadTfRecords(file)->size(), 3u);
  for (size_t byte = 0; byte < file.size(); ++byte) {
    std::string damaged = file;
    damaged[byte] ^= 4;
    EXPECT_FALSE(ReadTfRecords(damaged).ok()) << byte;
  }
  int whole = 0;
  for (size_t size = 0; size <= file.size(); ++size) {
    whole += ReadTfRecords(absl::string_view(file).substr(0, size)).ok() ? 1 : 0;
  }
  EXPECT_EQ(whole, 4);  // After none, one, two and three.
}

TEST(EventFile, AFolderThatCannotBeIsNamed) {
  const std::string file = MadeFile("no_folder", "x");
  EXPECT_THAT(std::string(EventFile::Create(file + "/events", std::nullopt).status().message()),
              HasSubstr("no_folder/events"));
}

}  // namespace
}  // namespace isomer
