#include "pcg/support/gzip.h"

#include <string>

#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

std::string Unzipped(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::GzipInputStream text(&input, google::protobuf::io::GzipInputStream::GZIP);
  std::string result;
  const void* buffer = nullptr;
  int size = 0;
  while (text.Next(&buffer, &size)) result.append(static_cast<const char*>(buffer), size);
  return result;
}

TEST(Gzip, IsReadBack) {
  std::string events;
  for (int i = 0; i < 100000; ++i) events += "{\"ts\":" + std::to_string(i * 7 % 1000) + "},";
  for (const std::string& text : {std::string(), std::string("{}"), events}) {
    EXPECT_EQ(Unzipped(Gzip(text)), text);
    EXPECT_EQ(Gzip(text), Gzip(text));
  }
  EXPECT_LT(Gzip(events).size(), events.size() / 10);
}

TEST(Gzip, GoesByTheName) {
  const std::string path = testing::TempDir() + "/gzip_test.json";
  ASSERT_TRUE(WriteTextOrGzip(path, "{}").ok());
  ASSERT_TRUE(WriteTextOrGzip(path + ".gz", "{}").ok());
  EXPECT_EQ(ReadFile(path).value(), "{}");
  EXPECT_EQ(Unzipped(ReadFile(path + ".gz").value()), "{}");
}

}  // namespace
}  // namespace isomer
