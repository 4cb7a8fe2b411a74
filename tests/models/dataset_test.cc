#include "models/dataset.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isomer {
namespace {

using testing::ElementsAre;

std::string MessageOf(const std::string& contents) {
  return std::string(ParseCsv(contents, "d.csv").status().message());
}

TEST(Dataset, Digits) {
  const Dataset digits = ReadCsv(ISOMER_SOURCE_DIR "/models/data/digits.csv", 1.0 / 16).value();
  EXPECT_EQ(digits.num_rows(), 1797);
  EXPECT_EQ(digits.num_features, 64);
  EXPECT_EQ(digits.num_classes(), 10);
  EXPECT_THAT(digits.row(0).subspan(0, 4), ElementsAre(0, 0, 5.f / 16, 13.f / 16));
  const TrainTest split = SplitTail(digits, 360);
  EXPECT_EQ(split.train.num_rows(), 1437);
  EXPECT_EQ(split.test.num_rows(), 360);
}

TEST(Dataset, SpacesEmptyLinesAndNoLastNewline) {
  const Dataset data = ParseCsv("1, 2,0\r\n\n3,4 ,1", "d.csv").value();
  EXPECT_THAT(data.features, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(data.labels, ElementsAre(0, 1));
}

TEST(Dataset, EveryFifthRowTests) {
  const Dataset data = ParseCsv("0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n", "d.csv").value();
  const TrainTest split = SplitEveryFifth(data);
  EXPECT_THAT(split.train.labels, ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(split.train.features, ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(split.test.labels, ElementsAre(4));
}

TEST(Dataset, ErrorsNameLineAndCell) {
  EXPECT_EQ(MessageOf(""), "d.csv: has no rows");
  EXPECT_EQ(MessageOf("\n\n"), "d.csv: has no rows");
  EXPECT_EQ(MessageOf("1,2,0\n1,2\n"), "d.csv:2: 2 cells, but line 1 has 3");
  EXPECT_EQ(MessageOf("1,2,0\n1,abc,0\n"), "d.csv:2: cell 2 'abc' is not a number");
  EXPECT_EQ(MessageOf("1,nan,0\n"), "d.csv:1: cell 2 'nan' is not a number");
  EXPECT_EQ(MessageOf("1,2,0.5\n"), "d.csv:1: cell 3 '0.5' is not a label, an integer from 0 on");
  EXPECT_EQ(MessageOf("1,2,-1\n"), "d.csv:1: cell 3 '-1' is not a label, an integer from 0 on");
  EXPECT_EQ(MessageOf("42\n"),
            "d.csv:1: one cell '42'; features and a label are expected, separated by commas");
  EXPECT_EQ(ReadCsv("nowhere.csv").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace isomer
