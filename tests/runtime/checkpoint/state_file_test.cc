#include "runtime/checkpoint/state_file.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string ScratchStateFile(const std::string& name) {
  return testing::TempDir() + "/" + name + ".safetensors";
}

TEST(StateFile, SumsOfPartsAddUpToTheWhole) {
  std::vector<float> elements;
  for (int i = 0; i < 1000; ++i) elements.push_back(static_cast<float>(i % 7) - 3);
  PositionSum whole, even, odd;
  whole.Add(0, 1, elements);
  std::vector<float> halves[2];
  for (int i = 0; i < 1000; ++i) halves[i % 2].push_back(elements[i]);
  even.Add(0, 2, halves[0]);
  odd.Add(1, 2, halves[1]);
  EXPECT_EQ(even.value() + odd.value(), whole.value());
  // Two elements that change places, a zero's sign, any bit.
  std::swap(elements[3], elements[4]);
  PositionSum swapped;
  swapped.Add(0, 1, elements);
  EXPECT_NE(swapped.value(), whole.value());
  for (int bit = 0; bit < 32; ++bit) {
    uint32_t bits = 0;
    float one = 1;
    std::memcpy(&bits, &one, sizeof(bits));
    bits ^= 1u << bit;
    std::memcpy(&one, &bits, sizeof(bits));
    PositionSum before, after;
    before.Add(5, 1, {1});
    after.Add(5, 1, {one});
    EXPECT_NE(before.value(), after.value()) << bit;
  }
}

TEST(StateFile, HeaderIsThatOfSafetensors) {
  const StateLayout layout =
      LayOut({{.name = "a \"b\"/c", .dims = {2, 3}}, {.name = "s", .dims = {}}});
  uint64_t length = 0;
  std::memcpy(&length, layout.header.data(), sizeof(length));
  ASSERT_EQ(layout.header.size(), length + sizeof(length));
  EXPECT_EQ(layout.header.size() % 64, 0u);
  EXPECT_EQ(layout.bytes, static_cast<int64_t>(layout.header.size()) + 7 * 4);
  google::protobuf::Struct header;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(layout.header.substr(sizeof(length)), &header)
          .ok());
  const auto& matrix = header.fields().at("a \"b\"/c").struct_value().fields();
  EXPECT_EQ(matrix.at("dtype").string_value(), "F32");
  EXPECT_EQ(matrix.at("shape").list_value().values(1).number_value(), 3);
  EXPECT_EQ(matrix.at("data_offsets").list_value().values(1).number_value(), 24);
  EXPECT_EQ(header.fields().at("s").struct_value().fields().at("shape").list_value().values_size(),
            0);
}

// Two writers with parts of a matrix [rows, columns] and of its transpose: long lines are written
// as they are, others are put together first.
TEST(StateFile, PartsAreWrittenWhereTheyBelong) {
  for (const int64_t columns : {4, 600}) {
    const int64_t rows = 6;
    const StateLayout layout =
        LayOut({{.name = "w", .dims = {rows, columns}}, {.name = "t", .dims = {rows, columns}}});
    const std::string path = ScratchStateFile("parts" + std::to_string(columns));
    std::remove(path.c_str());
    ASSERT_TRUE(StateFileWriter::Create(path, layout).ok());
    PositionSum sums[2];
    for (int64_t half = 0; half < 2; ++half) {
      const auto file = StateFileWriter::Open(path);
      ASSERT_TRUE(file.ok()) << file.status();
      // Columns of w, line by line; rows of t, of which memory has the transpose.
      std::vector<float> part(rows * columns / 2);
      const auto of_columns = [&](absl::FunctionRef<void(const StateLine&)> f) {
        for (int64_t r = 0; r < rows; ++r) {
          f({r * columns + half * columns / 2, 1, columns / 2, r * columns / 2});
        }
      };
      of_columns([&](const StateLine& line) {
        for (int64_t i = 0; i < line.count; ++i) {
          part[line.place + i] = static_cast<float>(line.first + i);
        }
      });
      ASSERT_TRUE((*file)->Write(layout.tensors[0], of_columns, part.data(), &sums[0]).ok());
      const auto transposed = [&](absl::FunctionRef<void(const StateLine&)> f) {
        for (int64_t c = 0; c < columns; ++c) {
          f({half * rows / 2 * columns + c, columns, rows / 2, c * rows / 2});
        }
      };
      transposed([&](const StateLine& line) {
        for (int64_t i = 0; i < line.count; ++i) {
          part[line.place + i] = static_cast<float>(line.first + i * line.stride);
        }
      });
      ASSERT_TRUE((*file)->Write(layout.tensors[1], transposed, part.data(), &sums[1]).ok());
      ASSERT_TRUE((*file)->Sync().ok());
    }
    const absl::StatusOr<StateFile> file = StateFile::Open(path, layout);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int t : {0, 1}) {
      const absl::Span<const float> elements = file->ElementsOf(layout.tensors[t]);
      ASSERT_EQ(elements.size(), static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < elements.size(); ++i) ASSERT_EQ(elements[i], i) << t;
      PositionSum sum;
      sum.Add(0, 1, elements);
      EXPECT_EQ(sum.value(), sums[t].value());
    }
  }
}

TEST(StateFile, WhatIsNotWholeIsRefused) {
  const StateLayout layout = LayOut({{.name = "w", .dims = {8}}});
  const std::string path = ScratchStateFile("refused");
  EXPECT_FALSE(StateFile::Open(path + "missing", layout).ok());
  ASSERT_TRUE(WriteFileAtomically(path, layout.header + std::string(31, 0)).ok());
  EXPECT_THAT(StateFile::Open(path, layout).status().message(), HasSubstr("bytes, not "));
  std::string contents = layout.header + std::string(32, 0);
  contents[12] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  EXPECT_THAT(StateFile::Open(path, layout).status().message(), HasSubstr("header is damaged"));
  // An existing file is nobody's to overwrite.
  EXPECT_THAT(StateFileWriter::Create(path, layout).message(), HasSubstr("cannot be made"));
}

}  // namespace
}  // namespace isomer
