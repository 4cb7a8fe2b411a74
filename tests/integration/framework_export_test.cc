// Plans written for the frameworks that people train with, without these: what is refused, that
// files are Python, and that settings mean the plan that they were made from.
// scripts/check_pytorch_export.sh runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

class FrameworkExport : public testing::Test {
 protected:
  ProgramResult Optimize(std::vector<std::string> flags) const {
    flags.insert(flags.end(), machine_.begin(), machine_.end());
    flags.insert(flags.end(), {"--cache=false", "--json=" + json_});
    return RunBinary("isomer-optimize", flags);
  }
  void MakePlan(const std::string& model, std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {model, "--out=" + plan_});
    const ProgramResult made = Optimize(std::move(flags));
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  ProgramResult Export(const std::string& to, const std::string& out,
                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"export", plan_, "--to=" + to, "--out=" + out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunBinary("isomer-optimize", arguments);
  }
  // What a device holds tells configurations apart. (Steps differ a little, as buckets are chosen.)
  std::string PeakBytes() const {
    const std::string json = ReadFile(json_).value();
    const size_t at = json.find("\"predicted_peak_bytes\"");
    return json.substr(at, json.find_first_of(",\n", at) - at);
  }

  const std::vector<std::string> machine_ = {"--machine=dgx_h100", "--nodes=1",
                                             "--devices_per_node=4"};
  const std::string plan_ = ScratchFile("net.plan"), json_ = ScratchFile("net.json");
};

TEST_F(FrameworkExport, PyTorchHasNoLion) {
  MakePlan("zoo:mlp?layers=2&inputs=8&hidden=8&classes=4&batch=8", {"--optimizer=lion"});
  const std::string out = ScratchFile("lion_plan.py");
  const ProgramResult exported = Export("pytorch", out);
  EXPECT_EQ(exported.exit_code, 2);
  EXPECT_THAT(exported.err, HasSubstr("the optimizer lion: torch.optim has none"));
  EXPECT_FALSE(ReadFile(out).ok());
}

TEST_F(FrameworkExport, PyTorchIsPythonWithTheNamesOfTheWeights) {
  MakePlan(SourceFile("models/data/bert_tiny.onnx"), {"--plan=grid", "--tensor=2"});
  const std::string out = ScratchFile("bert_plan.py");
  const ProgramResult exported = Export("pytorch", out);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const std::string text = ReadFile(out).value();
  EXPECT_THAT(text, HasSubstr("MESH = (2, 2)"));
  EXPECT_THAT(text, HasSubstr("layers.0.attention"));
  EXPECT_TRUE(ReadFile(ScratchFile("bert_plan.safetensors")).ok());
  if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  EXPECT_EQ(std::system(
                absl::StrCat("python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' '",
                             out, "'")
                    .c_str()),
            0);
}

// A name that would end the string, or the comment, that it is put into.
TEST_F(FrameworkExport, NamesDoNotBreakOut) {
  MakePlan("zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=8", {"--plan=data_parallel"});
  const std::string out = ScratchFile("a'b\"c.py");
  const ProgramResult exported = Export("pytorch", out);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  if (std::system("python3 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
  const std::string plain = ScratchFile("plain.py");
  std::filesystem::copy_file(out, plain);
  EXPECT_EQ(
      std::system(
          absl::StrCat("python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' ", plain)
              .c_str()),
      0);
}

TEST_F(FrameworkExport, SettingsMeanThePlan) {
  const std::string model =
      "zoo:bert_large?layers=4&hidden=256&heads=4&intermediate=1024&seq=64&batch=16";
  MakePlan(model, {"--plan=grid", "--tensor=2", "--optimizer=adam", "--update=sharded"});
  const std::string planned = PeakBytes();
  for (const std::string to : {"megatron", "deepspeed", "torchtitan"}) {
    const std::string settings = ScratchFile(to == "deepspeed"    ? "settings.json"
                                             : to == "torchtitan" ? "settings.toml"
                                                                  : "settings.txt");
    const ProgramResult exported = Export(to, settings, machine_);
    if (exported.exit_code == 1) {
      // What it cannot say is said, and nothing is written.
      EXPECT_THAT(exported.err, testing::Not(testing::IsEmpty())) << to;
      EXPECT_FALSE(ReadFile(settings).ok()) << to;
      continue;
    }
    ASSERT_EQ(exported.exit_code, 0) << to << ": " << exported.err;
    const ProgramResult compared = Optimize({model, "--compare=" + settings, "--optimizer=adam",
                                             "--budget=1", "--out=" + ScratchFile("better.plan")});
    ASSERT_EQ(compared.exit_code, 0) << to << ": " << compared.err;
    EXPECT_TRUE(absl::StrContains(ReadFile(json_).value(), planned)) << to << " " << planned;
  }
}

TEST_F(FrameworkExport, WhatIsAskedWronglyIsOneLine) {
  MakePlan("zoo:mlp?layers=2&inputs=16&hidden=16&classes=4&batch=8", {"--plan=data_parallel"});
  const auto refuse = [](const ProgramResult& result, const std::string& why) {
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  const std::string out = ScratchFile("out");
  refuse(Export("tensorflow", out), "--to=tensorflow: there are pytorch, megatron");
  refuse(Export("megatron", out), "--to=megatron needs --machine");
  refuse(Export("pytorch", plan_), plan_);
  refuse(Export("pytorch", ScratchFile("none/out.py")), "folder");
  refuse(RunBinary("isomer-optimize", {"export", "nowhere.plan", "--to=pytorch", "--out=" + out}),
         "nowhere.plan: no such file");
  refuse(RunBinary("isomer-optimize", {"export", "--to=pytorch"}), "export takes one PLAN");
  EXPECT_FALSE(ReadFile(out).ok());
}

}  // namespace
}  // namespace isomer
