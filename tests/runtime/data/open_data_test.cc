// Files of data in each format, and files that are none.
#include "runtime/data/open_data.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/csv.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::vector<double> AllOf(const Records& records) {
  std::vector<double> values(records.rows() * records.row_elements());
  EXPECT_EQ(records.Read(0, records.rows(), values.data()), absl::OkStatus());
  return values;
}

OpenedData Opened(const std::string& path, std::optional<ElementType> raw = std::nullopt) {
  absl::StatusOr<OpenedData> data = OpenData(path, raw);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : OpenedData();
}

std::string ErrorOf(const std::string& path, std::optional<ElementType> raw = std::nullopt) {
  const absl::StatusOr<OpenedData> data = OpenData(path, raw);
  EXPECT_FALSE(data.ok());
  return std::string(data.status().message());
}

std::string ErrorOfContents(const std::string& name, const std::string& contents) {
  return ErrorOf(MadeFile(name, contents));
}

TEST(OpenNpy, EveryTypeAndBothByteOrders) {
  const auto values_of = [](const std::string& descr, const std::string& data) {
    return AllOf(*Opened(MadeFile("a.npy", NpyBytes(descr, "(2,)", data))).arrays[0].records);
  };
  EXPECT_THAT(values_of("<f4", BytesOf<float>({1.5, -2})), ElementsAre(1.5, -2));
  EXPECT_THAT(values_of("<f8", BytesOf<double>({1.5, -2})), ElementsAre(1.5, -2));
  EXPECT_THAT(values_of("<f2", BytesOf<uint16_t>({0x3e00, 0xc000})), ElementsAre(1.5, -2));
  EXPECT_THAT(values_of("|b1", BytesOf<char>({0, 1})), ElementsAre(0, 1));
  EXPECT_THAT(values_of("|u1", "\xff\x02"), ElementsAre(255, 2));
  EXPECT_THAT(values_of("|i1", "\xff\x02"), ElementsAre(-1, 2));
  EXPECT_THAT(values_of("<i8", BytesOf<int64_t>({-7, 9})), ElementsAre(-7, 9));
  EXPECT_THAT(values_of(">u2", std::string("\1\0\0\1", 4)), ElementsAre(256, 1));
  EXPECT_THAT(values_of(">f4", std::string("\x3f\xc0\0\0\xc0\0\0\0", 8)), ElementsAre(1.5, -2));
}

TEST(OpenNpy, RowsAreTheFirstDim) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0);
  const OpenedData data = Opened(MadeFile("r.npy", NpyBytes("<f4", "(2, 3, 4)", BytesOf(values))));
  const Records& records = *data.arrays[0].records;
  EXPECT_EQ(records.rows(), 2);
  EXPECT_THAT(records.row_shape(), ElementsAre(3, 4));
  std::vector<double> row(12);
  ASSERT_EQ(records.Read(1, 1, row.data()), absl::OkStatus());
  EXPECT_EQ(row[0], 12);
  EXPECT_THAT(records.Place(1, 7), EndsWith("r.npy: row 1, element [1,3]"));
}

TEST(OpenNpy, OtherArraysAreRefused) {
  const std::string eight(8, '\0');
  const auto error_of = [&](const std::string& bytes) { return ErrorOfContents("e.npy", bytes); };
  EXPECT_THAT(error_of(NpyBytes("<f4", "(2, 3)", eight)),
              EndsWith("e.npy: its shape is float32[2,3], of 24 bytes, but there are 8: it is cut "
                       "short"));
  EXPECT_THAT(error_of(NpyBytes("<f4", "(1,)", eight)),
              EndsWith("its shape is float32[1], of 4 bytes, but there are 8"));
  EXPECT_THAT(error_of(NpyBytes("<f4", "(1, 2)", eight, "True")), HasSubstr("in Fortran's order"));
  EXPECT_THAT(error_of(NpyBytes("<c8", "(1,)", eight)), HasSubstr("its elements are '<c8'"));
  EXPECT_THAT(error_of(NpyBytes("|O", "(1,)", eight)), HasSubstr("its elements are '|O'"));
  EXPECT_THAT(error_of(NpyBytes("<f4", "()", eight)), HasSubstr("it is one number"));
  EXPECT_THAT(error_of(NpyBytes("<f4", "(0, 3)", "")), HasSubstr("it has no elements"));
  EXPECT_THAT(error_of(NpyBytes("<f8", "(4000000000, 4000000000)", eight)),
              HasSubstr("no file has so many bytes"));
  EXPECT_THAT(error_of(NpyBytes("<f4", "(99999999999999999999,)", eight)),
              HasSubstr("its header is "));
  EXPECT_THAT(error_of("\x93NUMPY"), HasSubstr("cut short in its header"));
  EXPECT_THAT(error_of(absl::StrCat(absl::string_view("\x93NUMPY\x01\x00\xff\xff", 10), "{")),
              HasSubstr("its header is longer than 64 KiB"));
  EXPECT_THAT(error_of(absl::StrCat(absl::string_view("\x93NUMPY\x01\x00\x05\x00", 10), "abcde")),
              HasSubstr("its header is 'abcde'"));
}

TEST(OpenNpy, EveryPrefixOfAFileIsRefused) {
  const std::string whole = NpyBytes("<f4", "(2, 2)", BytesOf<float>({1, 2, 3, 4}));
  for (size_t size = 6; size < whole.size(); ++size) {
    ErrorOfContents("p.npy", whole.substr(0, size));
  }
}

TEST(OpenNpz, NamedArrays) {
  const std::string path =
      MadeFile("z.npz", ZipBytes({{"image.npy", NpyBytes("<f4", "(2, 1)", BytesOf<float>({1, 2}))},
                                  {"labels.npy", NpyBytes("|u1", "(2,)", "\3\4")}}));
  const OpenedData data = Opened(path);
  ASSERT_EQ(data.arrays.size(), 2);
  EXPECT_EQ(data.arrays[0].name, "image");
  EXPECT_THAT(AllOf(*data.arrays[0].records), ElementsAre(1, 2));
  EXPECT_EQ(data.arrays[1].name, "labels");
  EXPECT_THAT(AllOf(*data.arrays[1].records), ElementsAre(3, 4));
}

// Archives above 4 GiB have 64-bit numbers in extra fields and in a record of their own.
TEST(OpenNpz, WideNumbers) {
  const std::string array = NpyBytes("|u1", "(2,)", "\3\4");
  const uint64_t size = array.size();
  const std::string local =
      absl::StrCat("PK\3\4", BytesOf<uint16_t>({45, 0, 0, 0, 0}), BytesOf<uint32_t>({0, ~0u, ~0u}),
                   BytesOf<uint16_t>({5, 20}), "x.npy", BytesOf<uint16_t>({1, 16}),
                   BytesOf<uint64_t>({size, size}), array);
  const std::string entry = absl::StrCat(
      "PK\1\2", BytesOf<uint16_t>({45, 45, 0, 0, 0, 0}), BytesOf<uint32_t>({0, ~0u, ~0u}),
      BytesOf<uint16_t>({5, 28, 0, 0, 0}), BytesOf<uint32_t>({0, ~0u}), "x.npy",
      BytesOf<uint16_t>({1, 24}), BytesOf<uint64_t>({size, size, 0}));
  const uint64_t directory = local.size(), end = directory + entry.size();
  const std::string zip = absl::StrCat(
      local, entry, "PK\6\6", BytesOfOne<uint64_t>(44), BytesOf<uint16_t>({45, 45}),
      BytesOf<uint32_t>({0, 0}), BytesOf<uint64_t>({1, 1, entry.size(), directory}), "PK\6\7",
      BytesOfOne<uint32_t>(0), BytesOfOne<uint64_t>(end), BytesOfOne<uint32_t>(1), "PK\5\6",
      BytesOf<uint16_t>({0, 0, 1, 1}), BytesOf<uint32_t>({~0u, ~0u}), BytesOfOne<uint16_t>(0));
  const OpenedData data = Opened(MadeFile("wide.npz", zip));
  ASSERT_EQ(data.arrays.size(), 1);
  EXPECT_THAT(AllOf(*data.arrays[0].records), ElementsAre(3, 4));
}

TEST(OpenNpz, OtherArchivesAreRefused) {
  const std::string array = NpyBytes("|u1", "(2,)", "\3\4");
  EXPECT_THAT(ErrorOfContents("c.npz", ZipBytes({{"x.npy", array}}, 8)),
              HasSubstr("array 'x': it is compressed; np.savez"));
  EXPECT_THAT(ErrorOfContents("t.npz", ZipBytes({{"x.txt", array}})),
              HasSubstr("its member 'x.txt' is no array"));
  EXPECT_THAT(ErrorOfContents("n.npz", ZipBytes({})), HasSubstr("it has no arrays"));
  EXPECT_THAT(ErrorOfContents("b.npz", ZipBytes({{"x.npy", "nonsense"}})),
              HasSubstr("array 'x': it is no array of NumPy's"));
}

TEST(OpenNpz, EveryPrefixAndEveryChangedByteIsReadOrRefused) {
  const std::string whole = ZipBytes({{"x.npy", NpyBytes("|u1", "(2,)", "\3\4")}});
  for (size_t size = 4; size < whole.size(); ++size) {
    ErrorOfContents("p.npz", whole.substr(0, size));
  }
  for (size_t at = 4; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    const auto data = OpenData(MadeFile("q.npz", changed), std::nullopt);
    if (!data.ok()) continue;
    for (const NamedRecords& array : data->arrays) AllOf(*array.records);
  }
}

TEST(OpenIdx, BigEndianImagesAndLabels) {
  const OpenedData data = Opened(MadeFile("train-images-idx3-ubyte", IdxBytes({2, 1, 2}, "abcd")));
  const Records& records = *data.arrays[0].records;
  EXPECT_EQ(records.rows(), 2);
  EXPECT_THAT(records.row_shape(), ElementsAre(1, 2));
  EXPECT_THAT(AllOf(records), ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(ErrorOfContents("t10k-images-idx3-ubyte", IdxBytes({2, 1, 2}, "abc")),
              HasSubstr("its shape is uint8[2,1,2], of 4 bytes, but there are 3: it is cut short"));
  EXPECT_THAT(ErrorOfContents("x-idx3-ubyte", IdxBytes({2, 1, 2}, "").substr(0, 9)),
              HasSubstr("cut short in its header"));
}

TEST(OpenTokens, TypeIsStatedOrFound) {
  const auto type_of = [](const std::string& path, std::optional<ElementType> raw = std::nullopt) {
    return Opened(path, raw).arrays[0].records->ToString();
  };
  const std::string narrow = BytesOf<uint16_t>({5, 6, 7, 8}), wide = BytesOf<uint32_t>({5, 6, 7});
  EXPECT_EQ(type_of(MadeFile("t.bin", narrow)), "4 rows of uint16");
  EXPECT_EQ(type_of(MadeFile("t.bin", wide)), "3 rows of uint32");
  EXPECT_EQ(type_of(MadeFile("t.uint16.bin", wide)), "6 rows of uint16");
  EXPECT_EQ(type_of(MadeFile("t.bin", wide), ElementType::kUint16), "6 rows of uint16");
  EXPECT_THAT(ErrorOfContents("odd.bin", "\1\2\3"),
              HasSubstr("it has 3 bytes, which are no whole uint16"));
  EXPECT_THAT(ErrorOf(MadeFile("six.bin", "\1\2\3\4\5\6"), ElementType::kUint32),
              HasSubstr("it has 6 bytes, which are no whole uint32"));
}

TEST(OpenMegatron, DocumentsAreOneStream) {
  const std::string tokens = MadeFile("corpus.bin", BytesOf<uint16_t>({1, 2, 3, 4, 5}));
  const std::string index = MadeFile("corpus.idx", MegatronIndex({2, 3}));
  for (const std::string& name : {tokens, index, tokens.substr(0, tokens.size() - 4)}) {
    EXPECT_THAT(AllOf(*Opened(name).arrays[0].records), ElementsAre(1, 2, 3, 4, 5)) << name;
  }
}

TEST(OpenMegatron, PairsThatDoNotFitAreRefused) {
  const std::string tokens = MadeFile("pair.bin", BytesOf<uint16_t>({1, 2, 3, 4, 5}));
  const auto error_of = [&](const std::string& index) {
    MadeFile("pair.idx", index);
    return ErrorOf(tokens);
  };
  EXPECT_THAT(error_of(MegatronIndex({2, 4})),
              testing::AllOf(HasSubstr("pair.bin: it has 10 bytes, but "),
                             HasSubstr("pair.idx says 12: it is cut short")));
  std::string version = MegatronIndex({2, 3});
  version[9] = 2;
  EXPECT_THAT(error_of(version), HasSubstr("it is of version 2; 1 is read"));
  EXPECT_THAT(error_of(MegatronIndex({2, 3}, 9)), HasSubstr("its type has the code 9"));
  EXPECT_THAT(error_of(MegatronIndex({2, -3})), HasSubstr("sequence 1 has -3 tokens"));
  EXPECT_THAT(error_of(MegatronIndex({2, 3}, 8, 4)),
              HasSubstr("sequence 1 begins at byte 8, and the one before it ends at 4"));
  const std::string whole = MegatronIndex({2, 3});
  for (size_t size = 9; size < whole.size(); ++size) error_of(whole.substr(0, size));
  std::string many = whole;
  many.replace(18, 8, BytesOfOne<uint64_t>(uint64_t{1} << 62));
  EXPECT_THAT(error_of(many), HasSubstr("which are not those of"));
}

TEST(OpenCsv, NamesSeparatorsQuotesAndEmptyLines) {
  const auto table_of = [](const std::string& text) {
    return Opened(MadeFile("t.csv", text)).table;
  };
  const auto numbers = [](const CsvTable& table) {
    std::vector<int64_t> columns(table.num_columns());
    std::iota(columns.begin(), columns.end(), 0);
    std::vector<double> values(table.rows() * table.num_columns());
    EXPECT_EQ(table.Read(0, table.rows(), columns, values.data()), absl::OkStatus());
    return values;
  };
  EXPECT_THAT(numbers(*table_of("1, 2,0\r\n\n3,4 ,1")), ElementsAre(1, 2, 0, 3, 4, 1));
  EXPECT_THAT(numbers(*table_of("a;label;b\n1;2;-3e-1\n")), ElementsAre(1, 2, -0.3));
  EXPECT_THAT(numbers(*table_of("\xef\xbb\xbf\"a, or b\"\t\"c\"\n\"1\"\t+2\n")), ElementsAre(1, 2));
  EXPECT_EQ(*table_of("a,label,b\n1,2,3\n")->LabelColumn(""), 1);
  EXPECT_EQ(*table_of("a,label,b\n1,2,3\n")->LabelColumn("a"), 0);
  EXPECT_EQ(*table_of("0,1,label\n5,6,7\n")->LabelColumn(""), 2);  // pandas counts columns
  EXPECT_EQ(*table_of("1,2,3\n")->LabelColumn(""), 2);
  EXPECT_THAT(std::string(table_of("a,b\n1,2\n")->LabelColumn("c").status().message()),
              EndsWith("t.csv: no column 'c'; there are 'a', 'b'"));
  EXPECT_THAT(std::string(table_of("1,2\n")->LabelColumn("c").status().message()),
              HasSubstr("its first line has numbers and no names"));
}

TEST(OpenCsv, ErrorsNameLineAndCell) {
  EXPECT_THAT(ErrorOfContents("d.csv", "\n\n"), EndsWith("d.csv: has no rows"));
  EXPECT_THAT(ErrorOfContents("d.csv", "a,b\n"), EndsWith("d.csv: has no rows"));
  EXPECT_THAT(ErrorOfContents("d.csv", "1,2,0\n1,2\n"),
              EndsWith("d.csv:2: 2 cells, but line 1 has 3"));
  const auto read_error = [](const std::string& text) {
    double values[3];
    return std::string(
        Opened(MadeFile("d.csv", text)).table->Read(0, 1, {0, 1, 2}, values).message());
  };
  EXPECT_THAT(read_error("\n1,abc,0\n"), EndsWith("d.csv:2: cell 2 'abc' is not a number"));
  EXPECT_THAT(read_error("1,nan,0\n"), EndsWith("d.csv:1: cell 2 'nan' is not a number"));
  EXPECT_THAT(read_error("1,,0\n"), EndsWith("d.csv:1: cell 2 '' is not a number"));
  EXPECT_THAT(read_error("a,b,c\n1,1e999,0\n"),
              EndsWith("d.csv:2: cell 2 '1e999' is not a number"));
}

TEST(OpenCsv, AnyRowOfManyIsFound) {
  std::string text = "x,y\n";
  for (int row = 0; row < 5000; ++row) {
    absl::StrAppend(&text, row, ",", row % 7, "\n", row % 11 == 0 ? "\n" : "");
  }
  const auto table = Opened(MadeFile("many.csv", text)).table;
  ASSERT_EQ(table->rows(), 5000);
  for (int64_t row : {0, 15, 16, 17, 4999}) {
    double values[2];
    ASSERT_EQ(table->Read(row, 1, {0, 1}, values), absl::OkStatus());
    EXPECT_EQ(values[0], row);
    EXPECT_EQ(values[1], row % 7);
    EXPECT_EQ(table->LineOf(row), 2 + row + (row + 10) / 11);
  }
}

TEST(OpenData, WhatIsNoFileOfDataIsRefused) {
  EXPECT_EQ(ErrorOf("nowhere.csv"), "nowhere.csv: no such file");
  EXPECT_EQ(ErrorOf(""), "(empty file name): no such file");
  EXPECT_EQ(ErrorOf("/dev/zero"), "/dev/zero: is no regular file");
  EXPECT_THAT(ErrorOf(testing::TempDir()), HasSubstr(": is a directory"));
  EXPECT_THAT(ErrorOfContents("none.npy", ""), HasSubstr("none.npy: is empty"));
  EXPECT_THAT(ErrorOfContents("x.gz", "\x1f\x8b\x08"), HasSubstr("compressed by gzip; gunzip"));
  EXPECT_THAT(ErrorOfContents("x.parquet", "PAR1\1\2"), HasSubstr("it is Parquet"));
  EXPECT_THAT(ErrorOfContents("x.dat", std::string(64, '\1')), HasSubstr("--data_dtype says"));
  const std::string pipe = testing::TempDir() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf(pipe), HasSubstr("is no regular file"));
}

TEST(OpenData, AFileOfManyGigabytesIsNotRead) {
  const std::string path = MadeFile("large.uint16.bin", "ab");
  constexpr int64_t kBytes = int64_t{6} << 30;
  ASSERT_EQ(truncate(path.c_str(), kBytes), 0);  // a hole
  const OpenedData data = Opened(path);
  EXPECT_EQ(data.arrays[0].records->rows(), kBytes / 2);
  double last;
  ASSERT_EQ(data.arrays[0].records->Read(kBytes / 2 - 1, 1, &last), absl::OkStatus());
  EXPECT_EQ(last, 0);
  std::filesystem::remove(path);
}

TEST(OpenData, AFileThatIsCutShortLaterIsAnError) {
  const std::string path = MadeFile("cut.bin", BytesOf<uint16_t>({1, 2, 3, 4, 5, 6}));
  const OpenedData data = Opened(path);
  ASSERT_EQ(truncate(path.c_str(), 4), 0);
  double values[6];
  EXPECT_THAT(std::string(data.arrays[0].records->Read(0, 6, values).message()),
              EndsWith("cut.bin: it ends at byte 4 of the 12 that it had"));
}

}  // namespace
}  // namespace isomer
