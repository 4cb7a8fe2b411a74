// Weights that isomer-run begins with, --weights, and writes, --out. What other programs read and
// write is in tests/scripts/weight_files_test.py.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramResult RunOnDigits(std::vector<std::string> flags, const std::string& model = "") {
  flags.insert(flags.begin(),
               {model.empty() ? SourceFile("models/data/digits_cnn.onnx") : model, "--quiet"});
  return RunBinary("isomer-run", flags);
}

ProgramResult TrainOnDigits(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {SourceFile("models/data/digits_cnn.onnx"),
                               "--data=" + SourceFile("models/data/digits.csv"),
                               "--data_scale=0.0625", "--learning_rate=0.01"});
  return RunBinary("isomer-run", flags);
}

// Through every kind of file, under plans that store them in other ways.
TEST(WeightFiles, GoRoundToTheBit) {
  const std::string plan = ScratchFile("weights.plan"), first = ScratchFile("first.npz");
  const ProgramResult planned =
      RunBinary("isomer-optimize", {SourceFile("models/data/digits_cnn.onnx"),
                                    "--machine=laptop_cpu", "--devices_per_node=4", "--plan=zero3",
                                    "--optimizer=adam", "--cache=false", "--out=" + plan});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  ASSERT_EQ(RunOnDigits({"--steps=2", "--out=" + first}).exit_code, 0);
  std::string from = first;
  for (const char* name : {"a.safetensors", "b.npz", "c.onnx", "d.model", "e.npz"}) {
    const std::string to = ScratchFile(name);
    const ProgramResult result =
        RunOnDigits({"--steps=1", "--learning_rate=0", "--weights=" + from, "--out=" + to}, plan);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    from = to;
  }
  EXPECT_EQ(ReadFile(from).value(), ReadFile(first).value());
}

// Who starts a training again and again gives both flags from the first start on: the weights begin
// it, and its checkpoints go on.
TEST(WeightFiles, BeginATrainingThatCheckpointsGoOn) {
  const std::string weights = ScratchFile("begin.npz"), folder = ScratchFile("begun"),
                    once = ScratchFile("once.npz"), again = ScratchFile("again.npz");
  std::filesystem::remove_all(folder);
  ASSERT_EQ(TrainOnDigits({"--steps=2", "--seed=7", "--out=" + weights}).exit_code, 0);
  ASSERT_EQ(TrainOnDigits({"--weights=" + weights, "--steps=4", "--out=" + once}).exit_code, 0);
  const std::vector<std::string> both = {"--weights=" + weights, "--checkpoint_dir=" + folder,
                                         "--resume", "--quiet=false"};
  std::vector<std::string> first = both, second = both;
  first.push_back("--steps=2");
  second.insert(second.end(), {"--steps=4", "--out=" + again});
  const ProgramResult begun = TrainOnDigits(first);
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_THAT(begun.err, HasSubstr("there is no checkpoint in"));
  EXPECT_THAT(begun.err, Not(HasSubstr("--weights")));
  const ProgramResult resumed = TrainOnDigits(second);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("note: --weights is not taken, as training goes on with "
                                     "those of " +
                                     folder + "/step-000000002\n"));
  EXPECT_EQ(ReadFile(again).value(), ReadFile(once).value());
}

TEST(WeightFiles, AreOneLineWhereTheyDoNotFit) {
  const std::string weights = ScratchFile("digits.safetensors");
  ASSERT_EQ(RunOnDigits({"--steps=1", "--out=" + weights}).exit_code, 0);
  const auto refused = [](const ProgramResult& result) {
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(
      refused(RunOnDigits({"--weights=" + weights}, "zoo:lenet?batch=4")),
      HasSubstr("'conv1.weight' is [16,1,3,3], and the model's is [6,1,5,5]: dim 0 is 16 and "
                "not 6"));
  EXPECT_THAT(refused(RunOnDigits({"--weights=" + weights},
                                  "zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=4")),
              HasSubstr("none is in both"));
  EXPECT_THAT(refused(RunOnDigits({"--weights=" + weights, "--rename_weights=conv=convolution"})),
              HasSubstr("it lacks 'conv1.bias', 'conv1.weight', 'conv2.bias' and 1 more of the "
                        "model"));
  EXPECT_THAT(refused(RunOnDigits({"--weights=" + weights, "--rename_weights=^x="})),
              HasSubstr("it matches no name of"));
  EXPECT_THAT(refused(RunOnDigits({"--partial_weights"})), HasSubstr("needs --weights"));
  EXPECT_THAT(refused(RunOnDigits({"--weights=" + weights, "--out=" + weights})),
              HasSubstr("digits.safetensors"));
  const ProgramResult partial =
      RunBinary("isomer-run", {SourceFile("models/data/digits_cnn.onnx"), "--weights=" + weights,
                               "--rename_weights=conv1=conv3", "--partial_weights", "--steps=1"});
  EXPECT_EQ(partial.exit_code, 0) << partial.err;
  EXPECT_THAT(partial.err,
              HasSubstr("lacks 'conv1.bias', 'conv1.weight': they begin as the model"));
  EXPECT_THAT(partial.err, HasSubstr("has 'conv3.weight', 'conv3.bias', which the model lacks"));
}

}  // namespace
}  // namespace isomer
