// --offload and --state_precision, from the command line to a training and its checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/losses.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

ProgramResult Planned(const std::string& path, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {SourceFile("models/data/digits_cnn.onnx"),
                                        "--machine=laptop_cpu",
                                        "--devices_per_node=2",
                                        "--cache=false",
                                        "--plan=data_parallel",
                                        "--out=" + path};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return RunBinary("isomer-optimize", arguments);
}

void ExpectRefusal(const ProgramResult& result, const std::string& why) {
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr(why));
  const size_t line = result.err.find("error: ");
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(
      std::count(result.err.begin() + static_cast<std::ptrdiff_t>(line), result.err.end(), '\n'), 1)
      << result.err;
}

TEST(MemoryFlags, AreRefusedWhereTheyDoNotApply) {
  const std::string path = ScratchFile("memory.plan");
  for (const auto& [flags, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--offload=some"}, "--offload=some: there are none and auto"},
           {{"--mode=inference", "--offload=auto"}, "--offload is for --mode=training"},
           {{"--mode=inference", "--state_precision=bfloat16"},
            "--state_precision is for --mode=training"},
           {{"--state_precision=bfloat16"},
            "--state_precision=bfloat16: states in bfloat16: the optimizer sgd has none"},
           {{"--state_precision=float16", "--optimizer=adam"},
            "--state_precision=float16: there are float32 and bfloat16"},
           {{"--state_precision=bfloat16", "--optimizer=adagrad"}, "adagrad's sums only grow"},
           {{"--state_precision=bfloat16", "--optimizer=muon"},
            "the optimizer muon does not update each number by itself"},
           {{"--offload=auto", "--steps_between_flushes=2"},
            "--offload=auto does not go with --steps_between_flushes=2"}}) {
    ExpectRefusal(Planned(path, flags), why);
  }
}

TEST(MemoryFlags, StatesInBFloat16TrainAndGoOnFromCheckpoints) {
  const std::string low = ScratchFile("low.plan"), full = ScratchFile("full.plan");
  ASSERT_EQ(Planned(full, {"--optimizer=adam"}).exit_code, 0);
  const ProgramResult planned = Planned(low, {"--optimizer=adam", "--state_precision=bfloat16"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("its states are in bfloat16"));
  const auto training = [](const std::string& plan, const std::vector<std::string>& more) {
    std::vector<std::string> flags = {plan, "--data=" + SourceFile("models/data/digits.csv"),
                                      "--data_scale=0.0625", "--learning_rate=0.003"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  // Adam's own beta2 is not for bfloat16.
  ExpectRefusal(RunBinary("isomer-run", training(low, {"--steps=2"})),
                "--beta2=0.999: a state in bfloat16 would not decay, as each step rounds it to "
                "what it was; it takes at most 0.996");
  // As good as in float32.
  const std::vector<std::string> whole = {"--steps=40", "--beta2=0.99"};
  const std::vector<double> losses = LossesOf(training(low, whole));
  const std::vector<double> exact = LossesOf(training(full, whole));
  ASSERT_EQ(losses.size(), 40u);
  ASSERT_EQ(exact.size(), 40u);
  EXPECT_NE(losses, exact);
  EXPECT_LT(losses.back(), 0.6 * losses.front());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], exact[i], 0.05 * exact[0]) << i;
  // To the bit on from a checkpoint; a plan in float32 goes on from it, too.
  const std::string folder = ScratchFile("checkpoints"), copy = ScratchFile("copy");
  for (const std::string& old : {folder, copy}) std::filesystem::remove_all(old);
  const std::vector<double> first =
      LossesOf(training(low, {"--steps=25", "--beta2=0.99", "--checkpoint_dir=" + folder}));
  EXPECT_EQ(first, std::vector<double>(losses.begin(), losses.begin() + 25));
  std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
  const auto rest = [&](const std::string& plan, const std::string& from) {
    return LossesOf(
        training(plan, {"--steps=40", "--beta2=0.99", "--checkpoint_dir=" + from, "--resume"}));
  };
  EXPECT_EQ(rest(low, folder), std::vector<double>(losses.begin() + 25, losses.end()));
  const std::vector<double> widened = rest(full, copy);
  ASSERT_EQ(widened.size(), 15u);
  EXPECT_EQ(widened[0], losses[25]);
}

}  // namespace
}  // namespace isomer
