// isomer-run's tests between steps, early stopping, logs, --feed and --fetch, as a user has them.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string DigitsModel() { return SourceFile("models/data/digits_cnn.onnx"); }

ProgramResult RunDigits(std::vector<std::string> flags) {
  flags.insert(flags.begin(),
               {DigitsModel(), absl::StrCat("--data=", SourceFile("models/data/digits.csv")),
                "--data_scale=0.0625", "--learning_rate=0.01"});
  return RunBinary("isomer-run", flags);
}

std::string FreshPath(const std::string& name) {
  std::string path = ScratchFile(name);
  std::filesystem::remove_all(path);
  return path;
}

// The cells of a CSV file's rows, the first of which has their names, without times and memory.
std::vector<std::string> RowsWithoutTimes(const std::string& path) {
  std::vector<std::string> rows, names;
  const std::string contents = ReadFile(path).value_or("");
  for (const absl::string_view line : absl::StrSplit(contents, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (names.empty()) names = cells;
    std::string row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool varies = absl::StrContains(names[i], "_us") ||
                          absl::StrContains(names[i], "_per_s") ||
                          absl::StrContains(names[i], "bytes");
      if (!varies) absl::StrAppend(&row, cells[i], " ");
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(EvaluationFlags, TestsAfterSoManyStepsAndAtTheEnd) {
  const std::string csv = FreshPath("log.csv");
  const ProgramResult result =
      RunDigits({"--steps=25", "--eval_every=10", "--log_every=5", "--log_csv=" + csv});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* line : {"after step 10: test loss ", "after step 20: ", "after step 25: "}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  EXPECT_THAT(result.out, HasSubstr("step 15: loss "));
  EXPECT_THAT(result.out, HasSubstr(" GFLOP/s, "));
  EXPECT_THAT(result.out, Not(HasSubstr("MFU")));  // The model knows no machine.
  std::vector<std::string> steps;
  for (const std::string& row : RowsWithoutTimes(csv)) {
    steps.push_back(row.substr(0, row.find(' ')));
  }
  EXPECT_THAT(steps, ElementsAre("step", "5", "10", "15", "20", "25"));
}

TEST(EvaluationFlags, AFewRowsAreEnough) {
  const std::string rows = ScratchFile("three.csv");
  const std::string all = *ReadFile(SourceFile("models/data/digits.csv"));
  size_t end = 0;
  for (int row = 0; row < 3; ++row) end = all.find('\n', end) + 1;
  ASSERT_EQ(WriteFileAtomically(rows, all.substr(0, end)), absl::OkStatus());
  const ProgramResult result = RunDigits({"--steps=2", "--eval_data=" + rows});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("after step 2: test loss "));
  EXPECT_THAT(result.out, Not(HasSubstr(" of ")));
  EXPECT_THAT(RunDigits({"--steps=2", "--eval_steps=2"}).out, HasSubstr("(of 128 of 359 rows)"));
}

TEST(EarlyStopping, KeepsTheBestWeights) {
  const std::string folder = FreshPath("stopped"), out = FreshPath("best.onnx");
  const std::vector<std::string> flags = {
      "--learning_rate=0",          "--steps=60",          "--eval_every=5", "--early_stopping=3",
      "--checkpoint_dir=" + folder, "--keep_checkpoints=1"};
  std::vector<std::string> first = flags;
  first.push_back("--out=" + out);
  const ProgramResult result = RunDigits(first);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("stopped early after step 20: the loss was best after step 5"));
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000000005"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000000020"));
  std::vector<std::string> again = flags;
  again.push_back("--resume");
  EXPECT_THAT(RunDigits(again).out, HasSubstr("nothing is left to do: it stopped early"));
  // What was the best is known still.
  again[3] = "--early_stopping=4";
  EXPECT_THAT(RunDigits(again).out,
              HasSubstr("stopped early after step 25: the loss was best after step 5"));
}

TEST(Logs, GoOnWithTheTraining) {
  const std::string whole = FreshPath("whole.csv"), parts = FreshPath("parts.csv");
  const std::string folder = FreshPath("logged"), events = FreshPath("events");
  ASSERT_EQ(RunDigits({"--steps=12", "--eval_every=4", "--log_csv=" + whole}).exit_code, 0);
  const std::vector<std::string> flags = {"--eval_every=4", "--log_csv=" + parts,
                                          "--tensorboard=" + events, "--checkpoint_dir=" + folder};
  std::vector<std::string> first = flags, second = flags;
  first.push_back("--steps=8");
  second.insert(second.end(), {"--steps=12", "--resume"});
  ASSERT_EQ(RunDigits(first).exit_code, 0);
  // As a run that was killed leaves it: rows behind its last checkpoint, and half of one.
  ASSERT_EQ(WriteFileAtomically(parts, absl::StrCat(*ReadFile(parts), "9,7,7,,,,,,,,,,,,\n10,3")),
            absl::OkStatus());
  ASSERT_EQ(RunDigits(second).exit_code, 0);
  EXPECT_EQ(RowsWithoutTimes(parts), RowsWithoutTimes(whole));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(events)) {
    files += absl::StrContains(entry.path().string(), "tfevents") ? 1 : 0;
  }
  EXPECT_EQ(files, 2);
}

TEST(Logs, OfProcessesOneTells) {
  const std::string plan = ScratchFile("two.plan");
  ASSERT_EQ(
      RunBinary("isomer-optimize", {DigitsModel(), "--machine=laptop_cpu", "--devices_per_node=2",
                                    "--plan=data_parallel", "--out=" + plan})
          .exit_code,
      0);
  std::map<std::string, std::vector<std::string>> rows;
  std::vector<std::string> outs;
  for (const std::string kind : {"threads", "mpi"}) {
    const std::string csv = FreshPath(kind + ".csv");
    const std::vector<std::string> flags = {
        plan,
        absl::StrCat("--data=", SourceFile("models/data/digits.csv")),
        "--steps=6",
        "--eval_every=3",
        "--log_csv=" + csv,
        "--communicator=" + kind};
    const ProgramResult result =
        kind == "mpi" ? RunUnderMpirun(2, "isomer-run", flags) : RunBinary("isomer-run", flags);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    rows[kind] = RowsWithoutTimes(csv);
    size_t tests = 0;
    for (size_t at = 0; (at = result.out.find("after step ", at)) != std::string::npos; ++at) {
      ++tests;
    }
    EXPECT_EQ(tests, 2u) << result.out;
  }
  ASSERT_EQ(rows["threads"].size(), 7u);
  for (size_t row = 0; row < 7; ++row) {
    // But for MFU, which is of times.
    const std::vector<std::string> a = absl::StrSplit(rows["threads"][row], ' ');
    const std::vector<std::string> b = absl::StrSplit(rows["mpi"][row], ' ');
    EXPECT_EQ(std::vector<std::string>(a.begin(), a.begin() + 3),
              std::vector<std::string>(b.begin(), b.begin() + 3));
    EXPECT_EQ(a.back(), b.back());
  }
}

TEST(FetchFlags, RunWhatIsNeeded) {
  const std::string logits = FreshPath("logits.npy");
  const ProgramResult wrote =
      RunBinary("isomer-run", {DigitsModel(), "--fetch=logits=" + logits, "--fetch=logits"});
  ASSERT_EQ(wrote.exit_code, 0) << wrote.err;
  EXPECT_THAT(wrote.out, HasSubstr("logits f32[64,10]: "));
  EXPECT_THAT(wrote.err, HasSubstr("input 'image' is not fed: it is random"));
  const ProgramResult fed =
      RunBinary("isomer-run", {DigitsModel(), "--feed=logits=" + logits, "--fetch=logits"});
  ASSERT_EQ(fed.exit_code, 0) << fed.err;
  EXPECT_EQ(fed.out, wrote.out);
  EXPECT_THAT(fed.err, Not(HasSubstr("image")));
  EXPECT_THAT(RunBinary("isomer-run", {DigitsModel(), "--fetch=logit"}).err,
              HasSubstr("--fetch: there is no tensor 'logit'; did you mean 'logits'"));
  EXPECT_THAT(
      RunBinary("isomer-run", {DigitsModel(), "--feed=image=" + logits, "--fetch=logits"}).err,
      HasSubstr("'image' is f32[64,1,8,8], and the array [64,10]: of 2 dims and not 4"));
  EXPECT_THAT(RunBinary("isomer-run", {DigitsModel(), "--fetch=logits", "--steps=3"}).err,
              HasSubstr("--steps does not go with --fetch"));
}

// Weights are those that --weights names, here what a training wrote.
TEST(FetchFlags, OfOtherWeights) {
  const std::string weights = FreshPath("trained.safetensors"), model = FreshPath("trained.model");
  for (const std::string& out : {weights, model}) {
    const ProgramResult trained =
        RunBinary("isomer-run", {DigitsModel(), "--steps=3", "--out=" + out});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  const std::string fetch = "--fetch=logits";
  const ProgramResult of_weights =
      RunBinary("isomer-run", {DigitsModel(), "--weights=" + weights, fetch});
  EXPECT_EQ(of_weights.exit_code, 0) << of_weights.err;
  EXPECT_EQ(of_weights.out, RunBinary("isomer-run", {model, fetch}).out);
  EXPECT_NE(of_weights.out, RunBinary("isomer-run", {DigitsModel(), fetch}).out);
}

TEST(EvaluationFlags, WhatMakesNoSenseIsRefused) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--metrics=acuracy"},
       "--metrics: there is no metric 'acuracy'; there are loss, perplexity"},
      {{"--metrics=auc"}, "--metrics: auc needs an output with one score"},
      {{"--monitor=loss"}, "--monitor needs --early_stopping"},
      {{"--early_stopping=2", "--monitor=auc"}, "--monitor=auc: tests find loss, accuracy"},
      {{"--eval_every=-1"}, "--eval_every must not be negative"},
      {{"--test_split=none", "--eval_every=2"}, "--eval_every needs rows that test"},
      {{"--log_csv=/nowhere/log.csv"}, "--log_csv: /nowhere/log.csv: the folder to write to"},
      {{"--tensorboard=" + DigitsModel()}, "--tensorboard: "},
      {{"--log_csv="}, "--log_csv: a file is expected"},
      {{"--log_every=-3"}, "--log_every must not be negative"}};
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> all = flags;
    all.push_back("--steps=2");
    const ProgramResult result = RunDigits(all);
    EXPECT_EQ(result.exit_code, 2) << flags[0];
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  }
  EXPECT_THAT(RunBinary("isomer-run", {DigitsModel(), "--eval_every=1", "--steps=1"}).err,
              HasSubstr("--eval_every needs --data with rows that test"));
}

}  // namespace
}  // namespace isomer
