// Which rows a step gets, and what does not fit a model.
#include "runtime/data/feeder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// Input 'image' f32[2,3], 'labels' i64[2] of 4 classes.
Graph Classifier() {
  Graph graph;
  const TensorRef image = graph.AddInput("image", SequentialType({2, 3}));
  const TensorRef weight = graph.AddWeight("w", SequentialType({3, 4}));
  const TensorRef labels = graph.AddInput("labels", SequentialType({2}, DataType::kInt64));
  const TensorRef logits = *graph.AddOp(OpKind::kMatMul, {image, weight});
  graph.AddOutput("logits", logits);
  graph.AddOutput("loss", *graph.AddOp(OpKind::kCrossEntropy, {logits, labels}, "loss"));
  return graph;
}

// Input 'input_ids' i64[2,4] of a table of 9 rows, 'labels' i64[8] of 9 classes.
Graph LanguageModel() {
  Model model = *BuildZooModel("gpt?layers=1&hidden=8&heads=2&vocabulary=9&seq=4&batch=2");
  EXPECT_EQ(AttachLoss(&model, "auto"), absl::OkStatus());
  return model.graph;
}

const Graph& TheClassifier() {
  static const Graph graph = Classifier();
  return graph;
}
const Graph& TheLanguageModel() {
  static const Graph graph = LanguageModel();
  return graph;
}

// Row r is r, r + 0.25, r + 0.5, and of class r % 4.
std::string RowsOfText(int rows) {
  std::string text;
  for (int r = 0; r < rows; ++r) {
    absl::StrAppend(&text, r, ",", r + 0.25, ",", r + 0.5, ",", r % 4, "\n");
  }
  return text;
}

DataOptions Of(std::vector<std::string> files) {
  return {.files = std::move(files), .scale = 1, .test_split = "none"};
}

Feeder FeederOf(const DataOptions& options, const Graph& graph = TheClassifier()) {
  absl::StatusOr<Feeder> feeder = Feeder::OverFiles(graph, options);
  EXPECT_TRUE(feeder.ok()) << feeder.status();
  return *std::move(feeder);
}

std::string ErrorOfFiles(DataOptions options, const Graph& graph = TheClassifier()) {
  return std::string(Feeder::OverFiles(graph, options).status().message());
}

// The rows of a step, by their first features.
std::vector<int> RowsIn(const HostValues& batch) {
  const Array<double>& image = batch.at("image");
  std::vector<int> rows;
  for (int64_t b = 0; b < 2; ++b) {
    const int row = static_cast<int>(image.data[3 * b]);
    EXPECT_EQ(image.data[3 * b + 2], row + 0.5);
    EXPECT_EQ(batch.at("labels").data[b], row % 4);
    rows.push_back(row);
  }
  return rows;
}

TEST(Feeder, InOrderAndWithoutTheRowsThatTest) {
  DataOptions options = Of({MadeFile("rows.csv", RowsOfText(11))});
  options.shuffle = false;
  options.test_split = "every_fifth";
  const Feeder feeder = FeederOf(options);
  EXPECT_EQ(feeder.batches_per_epoch(), 4);
  EXPECT_EQ(feeder.test_rows(), 2);
  EXPECT_THAT(RowsIn(*feeder.Batch(0)), ElementsAre(0, 1));
  EXPECT_THAT(RowsIn(*feeder.Batch(2)), ElementsAre(5, 6));
  EXPECT_THAT(RowsIn(*feeder.Batch(3)), ElementsAre(7, 8));
  EXPECT_THAT(RowsIn(*feeder.Batch(4)), ElementsAre(0, 1));
}

TEST(Feeder, ShufflesAllRowsInEachEpochAnew) {
  const Feeder feeder = FeederOf(Of({MadeFile("rows.csv", RowsOfText(100))}));
  std::vector<std::vector<int>> epochs(2);
  for (int64_t step = 0; step < 100; ++step) {
    const std::vector<int> rows = RowsIn(*feeder.Batch(step));
    epochs[step / 50].insert(epochs[step / 50].end(), rows.begin(), rows.end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (std::vector<int>& epoch : epochs) {
    EXPECT_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
    EXPECT_EQ(std::set<int>(epoch.begin(), epoch.end()).size(), 100);
  }
}

// What checkpoints rest on.
TEST(Feeder, ABatchIsAFunctionOfFilesSeedAndStep) {
  DataOptions options = Of({MadeFile("rows.csv", RowsOfText(30))});
  const Feeder feeder = FeederOf(options);
  std::vector<std::vector<int>> rows;
  for (int64_t step = 0; step < 40; ++step) rows.push_back(RowsIn(*feeder.Batch(step)));
  const Feeder again = FeederOf(options);
  EXPECT_EQ(again.fingerprint(), feeder.fingerprint());
  for (int64_t step : {39, 17, 18, 0, 25}) {
    EXPECT_EQ(RowsIn(*again.Batch(step)), rows[step]);
    EXPECT_EQ(RowsIn(*feeder.Batch(step)), rows[step]);
  }
  options.seed = 2;
  const Feeder other = FeederOf(options);
  EXPECT_NE(RowsIn(*other.Batch(0)), rows[0]);
}

TEST(Feeder, TheFingerprintIsOfAllThatBatchesDependOn) {
  const std::string path = MadeFile("rows.csv", RowsOfText(30));
  const DataOptions plain = Of({path});
  std::set<uint64_t> seen = {FeederOf(plain).fingerprint()};
  const auto expect_another = [&](const std::function<void(DataOptions*)>& change) {
    DataOptions options = plain;
    change(&options);
    EXPECT_TRUE(seen.insert(FeederOf(options).fingerprint()).second);
  };
  expect_another([](DataOptions* o) { o->seed = 2; });
  expect_another([](DataOptions* o) { o->shuffle = false; });
  expect_another([](DataOptions* o) { o->test_split = "every_fifth"; });
  expect_another([](DataOptions* o) { o->test_split = "tail:6"; });
  expect_another([](DataOptions* o) { o->scale = 2; });
  expect_another([](DataOptions* o) { o->files = {MadeFile("one.csv", RowsOfText(31))}; });
  std::string changed = RowsOfText(30);
  changed[0] = '7';
  expect_another([&](DataOptions* o) { o->files = {MadeFile("two.csv", changed)}; });
  // Files may be moved.
  DataOptions moved = plain;
  moved.files = {MadeFile("moved.csv", RowsOfText(30))};
  EXPECT_EQ(seen.count(FeederOf(moved).fingerprint()), 1);
}

TEST(Feeder, ScalesByTheLargestInTheTrainingRows) {
  DataOptions options = Of({MadeFile("s.csv", "2,0,-4,0\n1,0,0,1\n1,0,0,1\n0,0,9,1\n")});
  options.scale = 0;
  options.shuffle = false;
  options.test_split = "tail:1";
  EXPECT_EQ(FeederOf(options).Batch(0)->at("image").data[2], -1);
  // Files of floats are what they are.
  options.test_split = "none";
  options.files = {
      absl::StrCat("image=", MadeFile("f.npy", NpyBytes("<f4", "(2, 3)",
                                                        BytesOf<float>({1, 2, 3, 4, 5, 8})))),
      absl::StrCat("labels=", MadeFile("l.npy", NpyBytes("|u1", "(2,)", "\1\2")))};
  const HostValues batch = *FeederOf(options).Batch(0);
  EXPECT_EQ(batch.at("image").data[5], 8);
  EXPECT_THAT(batch.at("labels").data, ElementsAre(1, 2));
}

TEST(Feeder, NpzFeedsTheInputsOfItsNames) {
  DataOptions options = Of({MadeFile(
      "z.npz", ZipBytes({{"labels.npy", NpyBytes("<i8", "(2,)", BytesOf<int64_t>({3, 0}))},
                         {"image.npy", NpyBytes("|u1", "(2, 3)", "abcdef")}}))});
  options.shuffle = false;
  const HostValues batch = *FeederOf(options).Batch(0);
  EXPECT_THAT(batch.at("image").data, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  EXPECT_THAT(batch.at("labels").data, ElementsAre(3, 0));
}

TEST(Feeder, ImagesOfMnistBringTheirLabels) {
  const std::string images = MadeFile("train-images-idx3-ubyte", IdxBytes({2, 1, 3}, "abcdef"));
  MadeFile("train-labels-idx1-ubyte", IdxBytes({2}, "\1\3"));
  DataOptions options = Of({images});
  options.shuffle = false;
  EXPECT_THAT(FeederOf(options).Batch(0)->at("labels").data, ElementsAre(1, 3));
  MadeFile("train-labels-idx1-ubyte", IdxBytes({1}, "\1"));
  EXPECT_THAT(ErrorOfFiles(options), HasSubstr("1 rows for input 'labels', and 2 in "));
  std::filesystem::remove(testing::TempDir() + "/train-labels-idx1-ubyte");
  EXPECT_THAT(ErrorOfFiles(options), EndsWith("train-labels-idx1-ubyte: no such file"));
}

TEST(Feeder, LabelsOfTokensAreTheNextTokens) {
  DataOptions options =
      Of({MadeFile("t.bin", BytesOf<uint16_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}))});
  options.scale = 0;
  options.shuffle = false;
  const Feeder feeder = FeederOf(options, TheLanguageModel());
  EXPECT_EQ(feeder.batches_per_epoch(), 1);
  const HostValues batch = *feeder.Batch(0);
  EXPECT_THAT(batch.at("input_ids").data, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(batch.at("labels").data, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(Feeder, RowsOfSeveralFilesFollowEachOther) {
  DataOptions options = Of({MadeFile("a.csv", RowsOfText(3)), MadeFile("b.csv", RowsOfText(5))});
  options.shuffle = false;
  const Feeder feeder = FeederOf(options);
  EXPECT_EQ(feeder.batches_per_epoch(), 4);
  EXPECT_EQ(feeder.files().size(), 2);
  std::vector<int> rows;
  for (int64_t step = 0; step < 4; ++step) {
    for (int row : RowsIn(*feeder.Batch(step))) rows.push_back(row);
  }
  EXPECT_THAT(rows, ElementsAre(0, 1, 2, 0, 1, 2, 3, 4));
  std::swap(options.files[0], options.files[1]);
  EXPECT_NE(FeederOf(options).fingerprint(), feeder.fingerprint());
  // Of tokens no sequence goes from one file to the next.
  DataOptions tokens = Of({MadeFile("a.bin", BytesOf<uint16_t>({0, 1, 2, 3, 4, 5})),
                           MadeFile("b.bin", BytesOf<uint16_t>({8, 7, 6, 5, 4}))});
  tokens.scale = 0;
  tokens.shuffle = false;
  const HostValues batch = *FeederOf(tokens, TheLanguageModel()).Batch(0);
  EXPECT_THAT(batch.at("input_ids").data, ElementsAre(0, 1, 2, 3, 8, 7, 6, 5));
  EXPECT_THAT(batch.at("labels").data, ElementsAre(1, 2, 3, 4, 7, 6, 5, 4));
}

TEST(Feeder, EvalDataTests) {
  DataOptions options = Of({MadeFile("rows.csv", RowsOfText(11))});
  options.eval_files = {MadeFile("eval.csv", RowsOfText(3))};
  const Feeder feeder = FeederOf(options);
  EXPECT_EQ(feeder.batches_per_epoch(), 5);
  EXPECT_EQ(feeder.test_rows(), 3);
  // What is missing in a batch are copies of its first row.
  options.eval_files = {MadeFile("eval.csv", RowsOfText(1))};
  options.scale = 1;
  EXPECT_THAT(FeederOf(options).TestBatch(0, 1)->at("image").data,
              ElementsAre(0, 0.25, 0.5, 0, 0.25, 0.5));
}

TEST(Feeder, WithoutAScanAValueIsAnErrorOfItsStep) {
  DataOptions options = Of({MadeFile("bad.csv", RowsOfText(6) + "1,2,3,4\n1,2,3,1\n")});
  EXPECT_THAT(ErrorOfFiles(options),
              EndsWith("bad.csv:7: cell 4 is 4, and input 'labels' takes integers from 0 to 3"));
  options.scan = false;
  options.shuffle = false;
  const Feeder feeder = FeederOf(options);
  for (int64_t step : {0, 1, 2}) EXPECT_TRUE(feeder.Batch(step).ok());
  EXPECT_THAT(std::string(feeder.Batch(3).status().message()), HasSubstr("bad.csv:7: cell 4 is 4"));
  options.scale = 0;
  EXPECT_THAT(ErrorOfFiles(options), HasSubstr("--noscan_data needs --data_scale"));
}

struct Misfit {
  std::string name;
  std::function<DataOptions()> options;
  std::string message;
  bool of_tokens = false;
};

class MisfitData : public testing::TestWithParam<Misfit> {};

TEST_P(MisfitData, IsRefused) {
  EXPECT_THAT(ErrorOfFiles(GetParam().options(),
                           GetParam().of_tokens ? TheLanguageModel() : TheClassifier()),
              HasSubstr(GetParam().message));
}

std::string NpyFile(const std::string& descr, const std::string& shape, const std::string& data) {
  return MadeFile("m.npy", NpyBytes(descr, shape, data));
}

std::string LabelsFile() {
  return absl::StrCat("labels=", MadeFile("labels.npy", NpyBytes("|u1", "(2,)", "\1\2")));
}

INSTANTIATE_TEST_SUITE_P(
    All, MisfitData,
    testing::Values(
        Misfit{"Dims",
               [] {
                 return Of({NpyFile("<f4", "(2, 4)", std::string(32, '\0')), LabelsFile()});
               },
               "m.npy: it has 2 rows of float32[4]; input 'image' f32[2,3] takes [3] a row: dim 1 "
               "is 4 and not 3"},
        Misfit{"Columns", [] { return Of({MadeFile("c.csv", "1,2,3,4,0\n1,2,3,4,0\n")}); },
               "c.csv: it has 2 rows of 4 columns; input 'image' f32[2,3] takes [3] a row"},
        Misfit{"FloatLabels",
               [] {
                 return Of(
                     {absl::StrCat("labels=", NpyFile("<f4", "(2,)", std::string(8, '\0'))),
                      absl::StrCat("image=", MadeFile("i.npy", NpyBytes("<f4", "(2, 3)",
                                                                        std::string(24, '\0'))))});
               },
               "m.npy: it has 2 rows of float32; input 'labels' i64[2] takes integers"},
        Misfit{"Nan",
               [] {
                 return Of({NpyFile("<f4", "(2, 3)", BytesOf<float>({0, 1, 2, 3, NAN, 5})),
                            LabelsFile()});
               },
               "m.npy: row 1, element [1] is nan, and input 'image' takes finite numbers"},
        Misfit{"AboveFloat32",
               [] {
                 return Of({NpyFile("<f8", "(2, 3)", BytesOf<double>({0, 1, 2, 3, 1e200, 5})),
                            LabelsFile()});
               },
               "m.npy: row 1, element [1] is 1e+200, and input 'image' takes finite numbers"},
        Misfit{"FractionAsLabel", [] { return Of({MadeFile("c.csv", "1,2,3,0\n1,2,3,0.5\n")}); },
               "c.csv:2: cell 4 is 0.5, and input 'labels' takes integers from 0 to 3"},
        Misfit{"NoLabels", [] { return Of({NpyFile("<f4", "(2, 3)", std::string(24, '\0'))}); },
               "input 'labels' i64[2] gets no data: --data labels=FILE"},
        Misfit{
            "PartsDiffer",
            [] {
              return Of({NpyFile("<f4", "(2, 3)", std::string(24, '\0')),
                         MadeFile("u.npy", NpyBytes("|u1", "(2, 3)", "abcdef")), LabelsFile(),
                         LabelsFile()});
            },
            "u.npy: it has 2 rows of uint8[3], which cannot follow the 2 rows of float32[3] of "},
        Misfit{"NoSuchInput", [] { return Of({"picture=nowhere.npy"}); },
               "the model has no input 'picture'; there are 'image', 'labels'"},
        Misfit{
            "NoSuchArray",
            [] {
              return Of({MadeFile("z.npz", ZipBytes({{"x.npy", NpyBytes("|u1", "(2,)", "ab")}}))});
            },
            "z.npz: array 'x' has the name of no input; there are 'image', 'labels'"},
        Misfit{"RowsDiffer",
               [] {
                 return Of({NpyFile("<f4", "(4, 3)", std::string(48, '\0')), LabelsFile()});
               },
               "labels.npy: 2 rows for input 'labels', and 4 in "},
        Misfit{"FewRows", [] { return Of({MadeFile("c.csv", "1,2,3,0\n")}); },
               "c.csv: 1 training rows are fewer than one batch of 2"},
        Misfit{"OneColumn", [] { return Of({MadeFile("c.csv", "42\n43\n")}); },
               "c.csv: one cell in a line; features and a label are expected"},
        Misfit{"TypeOfNothing",
               [] {
                 DataOptions options = Of({});
                 options.files = {NpyFile("<f4", "(2, 3)", std::string(24, '\0')), LabelsFile()};
                 options.open.raw_type = ElementType::kUint16;
                 return options;
               },
               "--data_dtype is for files of nothing but tokens"},
        Misfit{"LabelColumnOfNothing",
               [] {
                 DataOptions options =
                     Of({NpyFile("<f4", "(2, 3)", std::string(24, '\0')), LabelsFile()});
                 options.open.label_column = "y";
                 return options;
               },
               "--label_column is for CSV"},
        Misfit{
            "FewTokens",
            [] {
              DataOptions options = Of({MadeFile("t.bin", BytesOf<uint16_t>({1, 2, 3, 4, 5, 6}))});
              options.scale = 0;
              return options;
            },
            "t.bin: 1 training rows are fewer than one batch of 2", true},
        Misfit{"TokenBeyondTheTable",
               [] {
                 DataOptions options = Of(
                     {MadeFile("t.bin", BytesOf<uint16_t>({0, 1, 2, 3, 4, 9, 6, 7, 8, 1, 2, 3}))});
                 options.scale = 0;
                 return options;
               },
               "t.bin: token 5 is 9, and input 'input_ids' takes integers from 0 to 8", true},
        Misfit{"ScaleOfTokens",
               [] { return Of({MadeFile("t.bin", BytesOf(std::vector<uint16_t>(12, 1)))}); },
               "--data_scale is for float inputs; the model has none", true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
