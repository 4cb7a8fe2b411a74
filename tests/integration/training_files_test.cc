// isomer-run on files of data, as a user gives them.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kMlp[] = "zoo:mlp?layers=1&inputs=3&hidden=8&classes=4&batch=4";
constexpr char kTinyGpt[] = "zoo:gpt?layers=1&hidden=16&heads=2&vocabulary=16&seq=8&batch=4";

std::string Scratch(const std::string& name, const std::string& contents) {
  const std::string path = ScratchFile(name);
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok()) << path;
  return path;
}

// Row r is of class r % 4, which its features say.
std::string Rows(int rows) {
  std::string text = "a,b,c,label\n";
  for (int r = 0; r < rows; ++r) {
    absl::StrAppend(&text, r % 2, ",", r / 2 % 2, ",", (r * 7) % 5, ",", r % 4, "\n");
  }
  return text;
}

// Counting up: each next token is certain.
std::string CountedTokens(int tokens) {
  std::vector<uint16_t> counted(tokens);
  for (int i = 0; i < tokens; ++i) counted[i] = static_cast<uint16_t>(i % 16);
  return BytesOf(counted);
}

ProgramResult Train(const std::string& model, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {model, absl::StrCat("--json=", ScratchFile("run.json"))});
  return RunBinary("isomer-run", flags);
}

void ExpectRefused(const ProgramResult& result, const std::string& said) {
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr(said));
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(TrainingFiles, RowsOfTextWithNames) {
  const ProgramResult result =
      Train(kMlp, {"--data=" + Scratch("rows.csv", Rows(100)), "--epochs=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("epoch 2: mean loss "));
  EXPECT_THAT(result.out, HasSubstr(", test accuracy "));
  EXPECT_THAT(result.err, HasSubstr("note: 80 rows train, shuffled; 20 test"));
  const std::string json = ReadFile(ScratchFile("run.json")).value();
  EXPECT_THAT(json, HasSubstr("\"data_wait_us\""));
  EXPECT_THAT(json, HasSubstr("\"fingerprint\""));
}

TEST(TrainingFiles, TokensAreLearnt) {
  const ProgramResult result =
      Train(kTinyGpt, {"--data=" + Scratch("tokens.bin", CountedTokens(4000)), "--optimizer=adam",
                       "--learning_rate=0.01", "--epochs=3", "--test_split=tail:20"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("epoch 3: mean loss "));
  EXPECT_THAT(result.out, HasSubstr("test accuracy 100.00 %"));
}

TEST(TrainingFiles, WhatRunsIsAFunctionOfTheSeed) {
  const std::string data = "--data=" + Scratch("tokens.bin", CountedTokens(1000));
  const auto loss = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {data, "--steps=20", "--test_split=none"};
    flags.insert(flags.end(), more.begin(), more.end());
    const ProgramResult result = Train(kTinyGpt, flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(result.out.find("; loss"));
  };
  EXPECT_EQ(loss({}), loss({}));
  EXPECT_NE(loss({}), loss({"--noshuffle"}));
}

TEST(TrainingFiles, OtherRowsTest) {
  const ProgramResult result =
      Train(kMlp, {"--data=" + Scratch("rows.csv", Rows(20)), "--steps=7",
                   "--eval_data=" + Scratch("eval.csv", Rows(8)), "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("epoch 1: mean loss "));
  EXPECT_THAT(result.out, HasSubstr("after step 7: test loss "));
}

// A name may hold what shells and formats take for theirs.
TEST(TrainingFiles, NamesOfFiles) {
  for (const std::string name : {"a b.csv", "labels=x.csv", "%s\"'$(x).csv", "-x.csv", "ö.csv"}) {
    const ProgramResult result = Train(kMlp, {"--data=" + Scratch(name, Rows(20)), "--steps=1"});
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
  }
}

TEST(TrainingFiles, WhatIsReadIsNotWrittenOver) {
  const std::string data = Scratch("images.csv", "1,2,3\n4,5,6\n7,8,9\n1,1,1\n");
  const std::string labels = Scratch("labels.csv", "0\n1\n2\n3\n");
  ExpectRefused(RunBinary("isomer-run", {kMlp, "--data=features=" + data, "--data=labels=" + labels,
                                         "--test_split=none", "--out=" + labels}),
                "--out: ");
  EXPECT_EQ(ReadFile(labels).value(), "0\n1\n2\n3\n");
}

struct BadData {
  std::string name;
  std::string file, contents;
  std::vector<std::string> flags;
  std::string message;
  std::string model = kMlp;
};

void PrintTo(const BadData& bad, std::ostream* out) { *out << bad.name; }

class BadDataFile : public testing::TestWithParam<BadData> {};

TEST_P(BadDataFile, IsOneLineAndExitCode2) {
  std::vector<std::string> flags = GetParam().flags;
  if (!GetParam().file.empty()) {
    flags.push_back("--data=" + Scratch(GetParam().file, GetParam().contents));
  }
  ExpectRefused(Train(GetParam().model, flags), GetParam().message);
}

const std::string kZeros(64, '\0');

INSTANTIATE_TEST_SUITE_P(
    All, BadDataFile,
    testing::Values(
        BadData{"Zero", "", "", {"--data=/dev/zero"}, "/dev/zero: is no regular file"},
        BadData{"Folder", "", "", {"--data=/tmp"}, "/tmp: is a directory"},
        BadData{"Nowhere", "", "", {"--data=nowhere.npy"}, "nowhere.npy: no such file"},
        BadData{"NoName", "", "", {"--data="}, "--data: a file is expected"},
        BadData{"NoSuchInput", "", "", {"--data=picture=x.npy"}, "no input 'picture'"},
        BadData{"Empty", "x.csv", "", {}, "x.csv: is empty"},
        BadData{"Prose", "x.csv", "The quick brown fox.\nIt jumps.\n", {}, "x.csv: one cell"},
        BadData{"Nan",
                "x.csv",
                "1,2,3,0\n1,nan,3,0\n1,2,3,0\n1,2,3,0\n",
                {"--test_split=none"},
                "x.csv:2: cell 2 'nan'"},
        BadData{"Label",
                "x.csv",
                "1,2,3,4\n",
                {"--test_split=none"},
                "x.csv: 1 training rows are fewer than one batch of 4"},
        BadData{"LabelRange",
                "x.csv",
                "1,2,3,0\n1,2,3,0\n1,2,3,4\n1,2,3,0\n",
                {"--test_split=none"},
                "x.csv:3: cell 4 is 4, and input 'labels' takes integers from 0 to 3"},
        BadData{"NoColumn",
                "x.csv",
                "a,b,c,d\n1,2,3,0\n",
                {"--label_column=e"},
                "x.csv: no column 'e'; there are 'a', 'b', 'c', 'd'"},
        BadData{"Gzip", "x.csv.gz", "\x1f\x8b\x08", {}, "gunzip"},
        BadData{"CutShort", "x.npy", NpyBytes("<f4", "(8, 3)", kZeros), {}, "it is cut short"},
        BadData{"Dims",
                "x.npy",
                NpyBytes("<f4", "(8, 2)", kZeros),
                {},
                "input 'features' f32[4,3] takes [3] a row: dim 1 is 2 and not 3"},
        BadData{"NoLabels",
                "x.npy",
                NpyBytes("<f4", "(4, 4)", kZeros),
                {},
                "input 'labels' i64[4] gets no data: --data labels=FILE",
                "zoo:mlp?layers=1&inputs=4&hidden=8&classes=4&batch=4"},
        BadData{"Compressed", "x.npz", ZipBytes({{"labels.npy", "x"}}, 8), {}, "np.savez"},
        BadData{"Mode", "x.csv", "1,2,3,0\n", {"--data_dtype=float32"}, "--data_dtype=float32: "},
        BadData{"TwoSplits",
                "x.csv",
                "1,2,3,0\n",
                {"--eval_data=x", "--test_split=none"},
                "--test_split does not go with --eval_data"},
        BadData{
            "Token", "x.bin", std::string(4000, '\x10'), {}, "x.bin: token 0 is 4112", kTinyGpt},
        BadData{"FewTokens",
                "x.bin",
                "\1\2\3\4",
                {},
                "x.bin: 2 tokens make no sequence of 8",
                kTinyGpt},
        BadData{"Shuffle", "", "", {"--noshuffle"}, "--shuffle needs --data"}),
    [](const auto& info) { return info.param.name; });

TEST(TrainingFiles, ALargeFileIsScannedAndNotRead) {
  const std::string path = Scratch("large.bin", "ab");
  std::filesystem::resize_file(path, std::uintmax_t{5} << 30);
  const ProgramResult result = Train(kTinyGpt, {"--data=" + path, "--data_dtype=uint16",
                                                "--steps=3", "--test_split=none", "--noscan_data"});
  std::filesystem::remove(path);
  // The first token, 'ab', may be in none of the three batches.
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace isomer
