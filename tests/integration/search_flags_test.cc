// How a search is steered from the command line: thresholds, proposers, pipelines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

class SearchFlags : public testing::Test {
 protected:
  ProgramResult Optimize(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {"zoo:mlp",        "--machine=dgx_h100",
                                          "--nodes=1",      "--devices_per_node=4",
                                          "--cache=false",  "--out=" + ScratchFile("flags.plan"),
                                          "--json=" + json_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const bool searches = std::none_of(flags.begin(), flags.end(), [](const std::string& flag) {
      return flag.starts_with("--plan=");
    });
    if (searches) arguments.push_back("--budget=1");
    return RunBinary("isomer-optimize", arguments);
  }

  void ExpectRefused(const std::vector<std::string>& flags, const std::string& why) const {
    const ProgramResult result = Optimize(flags);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  const std::string json_ = ScratchFile("flags.json");
};

TEST_F(SearchFlags, ThresholdsAreListedSetAndReported) {
  const ProgramResult listed = RunBinary("isomer-optimize", {"--list_policy", "--policy=walks=0"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, testing::ContainsRegex("walks +0  walks from one mapping"));
  const ProgramResult optimized = Optimize({"--policy=walks=0,near_best=1.5", "--list_proposers"});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_THAT(optimized.out, testing::ContainsRegex("walks +0 +0 +0.0%"));
  const std::string json = ReadFile(json_).value();
  EXPECT_THAT(json, HasSubstr("\"near_best\": 1.5"));
  EXPECT_THAT(json, HasSubstr("\"walks\": 0"));
}

TEST_F(SearchFlags, ExplainSaysWhyInTextAndJson) {
  const ProgramResult explained = Optimize({"--explain"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("\nWhy this plan\n\nComputation is split in\n"));
  EXPECT_THAT(explained.out, HasSubstr("What would have to change for "));
  EXPECT_THAT(ReadFile(json_).value(), HasSubstr("\"turning_points\""));
  EXPECT_THAT(Optimize({}).out, testing::Not(HasSubstr("Why this plan")));
  ExpectRefused({"--explain", "--list_policy"}, "--explain is of a plan");
}

TEST_F(SearchFlags, DiffHoldsTwoPlansAgainstEachOther) {
  const std::string a = ScratchFile("a.plan"), b = ScratchFile("b.plan");
  ASSERT_EQ(Optimize({"--out=" + a}).exit_code, 0);
  ASSERT_EQ(Optimize({"--out=" + b, "--plan=zero3"}).exit_code, 0);
  const std::vector<std::string> machine = {"--machine=dgx_h100", "--nodes=1",
                                            "--devices_per_node=4"};
  const auto diff = [&](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.begin(), "diff");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunBinary("isomer-optimize", arguments);
  };
  const ProgramResult both = diff({a, b, "--json=" + json_}, machine);
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("updates of weights"));
  EXPECT_THAT(both.out, HasSubstr("sharded_weights"));
  EXPECT_THAT(both.out, HasSubstr("What would have to change for " + b + " to win"));
  EXPECT_THAT(ReadFile(json_).value(), HasSubstr("\"blocks\""));
  const std::string inferring = ScratchFile("inferring.plan");
  ASSERT_EQ(Optimize({"--out=" + inferring, "--mode=inference"}).exit_code, 0);
  const ProgramResult modes = diff({a, inferring}, machine);
  ASSERT_EQ(modes.exit_code, 0) << modes.err;
  EXPECT_EQ(modes.err, "note: one is of training, the other of inference\n");
  const ProgramResult same = diff({a, a}, machine);
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("as fast as " + a));
  const auto refuse = [&](std::vector<std::string> arguments, const std::vector<std::string>& more,
                          const std::string& why) {
    const ProgramResult refused = diff(std::move(arguments), more);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(why));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  };
  refuse({a}, machine, "diff takes two plan files");
  refuse({a, b}, {}, "diff needs --machine");
  refuse({a, "nowhere.plan"}, machine, "nowhere.plan");
  refuse({a, b, "--budget=3"}, machine, "--budget");
  refuse({a, b, "--out=" + json_}, machine, "--out");
  refuse({a, b}, {"--machine=dgx_h100", "--nodes=1"}, a + ": the plan is for 4 devices");
}

TEST_F(SearchFlags, WhatIsNotThereIsRefusedInOneLine) {
  ExpectRefused({"--policy=walk=3"}, "--policy: no threshold 'walk'; there are near_best, ");
  ExpectRefused({"--policy=walks=1,walks=2"}, "--policy: 'walks' is set twice");
  ExpectRefused({"--list_policy"}, "--list_policy takes no MODEL");
  ExpectRefused({"--policy=busy_share=2"}, "busy_share is a number from 0 to 1");
  ExpectRefused({"--without=walk"}, "--without: no proposer 'walk'; there are data_parallel, ");
  ExpectRefused(
      {"--plan=zero3", "--without=walks"},
      "--without=walks: beside --plan=zero3 there are data_parallel, megatron, published");
  ExpectRefused({"--plan=grid", "--without=grid"},
                "there are data_parallel, zero3, megatron, published, grids");
  ExpectRefused({"--plan=expert"}, "--plan=expert: there are data_parallel, zero3");
  ExpectRefused({"--plan=grid", "--pipeline=3"}, "--pipeline=3: 3 does not divide 4 devices");
  ExpectRefused({"--plan=grid", "--pipeline=2x"}, "--pipeline=2x: a number is expected, or two");
  ExpectRefused({"--plan=grid", "--recompute=some"}, "--recompute: 'some': there are none, ");
  ExpectRefused({"--tensor=2"}, "--tensor is for --plan=grid");
  ExpectRefused({"--plan=grid", "--nosequence_parallel"},
                "--sequence_parallel is for --tensor of 2 or more");
  ExpectRefused({"--plan=megatron", "--context=2"}, "--context is for --plan=grid");
  ExpectRefused({"--context_exchange=all_gather"}, "--context_exchange is for --plan=grid");
  ExpectRefused({"--plan=grid", "--context_exchange=all_to_all"},
                "--context_exchange is for --context of 2 or more");
  ExpectRefused({"--plan=grid", "--context=2", "--context_exchange=ring"},
                "--context_exchange=ring: there are all_gather, all_to_all and auto");
  ExpectRefused({"--context_order=striped"}, "--context_order is for --plan=grid");
  ExpectRefused({"--plan=grid", "--context_order=contiguous"},
                "--context_order is for --context of 2 or more");
  ExpectRefused({"--plan=grid", "--context=2", "--context_order=zigzag"},
                "--context_order=zigzag: there are contiguous, striped and auto");
  ExpectRefused({"--plan=grid", "--context=2", "--context_order=striped"},
                "--context_order=striped: no causal attention of ");
  ExpectRefused({"--attention=fast"}, "--attention=fast: there are flash and unfused");
  ExpectRefused({"--attention=unfused"}, "has no calls of fused attention");
  ExpectRefused({"--search=exhaustive", "--precision=bfloat16"}, "is for --precision=float32");
}

// A plan costs the same when it is brought back, another where machines differ, and one line where
// it does not suit.
TEST_F(SearchFlags, PlansArePricedAsTheyWereMade) {
  const std::string plan = ScratchFile("priced.plan"), json = ScratchFile("priced.json");
  const auto number = [](const std::string& path, const std::string& key) {
    const std::string text = ReadFile(path).value();
    const size_t at = text.find("\"" + key + "\": ");
    EXPECT_NE(at, std::string::npos) << key;
    return std::strtod(text.c_str() + at + key.size() + 4, nullptr);
  };
  const ProgramResult made =
      RunBinary("isomer-optimize",
                {SourceFile("models/data/bert_tiny.onnx"), "--machine=dgx_h100", "--nodes=1",
                 "--plan=grid", "--tensor=2", "--pipeline=2", "--out=" + plan, "--json=" + json});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("The search would begin with "));
  const double step_us = number(json, "predicted_step_us");
  const auto price = [&](std::vector<std::string> flags) {
    flags.push_back("--price=" + plan);
    return RunBinary("isomer-optimize", flags);
  };
  const ProgramResult same = price({"--machine=dgx_h100", "--nodes=1", "--json=" + json});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("from a file"));
  EXPECT_EQ(number(json, "predicted_step_us"), step_us);
  EXPECT_EQ(price({"--machine=dgx_a100", "--nodes=1", "--json=" + json}).exit_code, 0);
  EXPECT_NE(number(json, "predicted_step_us"), step_us);
  for (const auto& [flags, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--machine=dgx_h100", "--nodes=2"},
            "the plan is for 8 devices, and the machine has 16"},
           {{}, "--price needs --machine"},
           {{"--machine=dgx_h100", "--batch_size=4"}, "--batch_size is of a search"},
           {{"zoo:mlp", "--machine=dgx_h100"}, "--price takes no MODEL"}}) {
    const ProgramResult refused = price(flags);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
}

// Their own configuration is a baseline that the search is held against.
TEST_F(SearchFlags, AUsersConfigurationIsCompared) {
  const std::string path = ScratchFile("megatron_args.txt");
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "--tensor-model-parallel-size 2 \\\n--micro-batch-size 1 "
                                  "--global-batch-size 16 --lr 1e-4\n")
                  .ok());
  const std::vector<std::string> arguments = {
      "zoo:gpt?layers=1&hidden=32&heads=16&vocabulary=64&"
      "seq=8",
      "--machine=dgx_h100",
      "--nodes=1",
      "--devices_per_node=4",
      "--out=" + ScratchFile("compared.plan"),
      "--compare=" + path};
  const ProgramResult compared = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, testing::ContainsRegex("megatron_args.txt +[0-9.]+ m?u?s a step"));
  EXPECT_THAT(compared.err, HasSubstr("of Megatron-LM's settings 1 are not read: --lr"));
  std::vector<std::string> other = arguments;
  other.push_back("--batch_size=8");
  const ProgramResult refused = RunBinary("isomer-optimize", other);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("its global batch is 16, the model's 8"));
  ASSERT_TRUE(WriteFileAtomically(path, "--micro-batch-size 1 --optimizer adam\n").ok());
  const ProgramResult by_another = RunBinary("isomer-optimize", arguments);
  EXPECT_EQ(by_another.exit_code, 2);
  EXPECT_THAT(by_another.err, HasSubstr("it trains by adam, and --optimizer is sgd"));
  ASSERT_TRUE(WriteFileAtomically(path, "--micro-batch-size 1 --tp-comm-overlap\n").ok());
  EXPECT_THAT(RunBinary("isomer-optimize", arguments).err,
              HasSubstr("its predicted step is one without --tp-comm-overlap"));
  other = arguments;
  other.push_back("--precision=bfloat16");
  EXPECT_EQ(RunBinary("isomer-optimize", other).exit_code, 0);
  other.push_back("--plan=grid");
  EXPECT_THAT(RunBinary("isomer-optimize", other).err, HasSubstr("--compare is for a search"));
}

TEST_F(SearchFlags, ModelsThatNeedAllSamplesHaveNoPipelines) {
  const ProgramResult result = RunBinary(
      "isomer-optimize", {"zoo:resnet101", "--machine=dgx_h100", "--nodes=1", "--plan=grid",
                          "--pipeline=2", "--out=" + ScratchFile("flags.plan")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("resnet101 needs all samples at once"));
}

}  // namespace
}  // namespace isomer
