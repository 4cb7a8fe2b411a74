// How a search is steered from the command line: thresholds, proposers, pipelines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

class SearchFlags : public testing::Test {
 protected:
  ProgramResult Optimize(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {"zoo:mlp",
                                          "--machine=dgx_h100",
                                          "--nodes=1",
                                          "--devices_per_node=4",
                                          "--budget=1",
                                          "--cache=false",
                                          "--out=" + ScratchFile("flags.plan"),
                                          "--json=" + json_};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
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

TEST_F(SearchFlags, WhatIsNotThereIsRefusedInOneLine) {
  ExpectRefused({"--policy=walk=3"}, "--policy: no threshold 'walk'; there are near_best, ");
  ExpectRefused({"--policy=walks=1,walks=2"}, "--policy: 'walks' is set twice");
  ExpectRefused({"--list_policy"}, "--list_policy takes no MODEL");
  ExpectRefused({"--policy=busy_share=2"}, "busy_share is a number from 0 to 1");
  ExpectRefused({"--without=walk"}, "--without: no proposer 'walk'; there are data_parallel, ");
  ExpectRefused({"--plan=expert"}, "--plan=expert: there are data_parallel, zero3");
  ExpectRefused({"--plan=grid", "--pipeline=3"}, "--pipeline=3: 3 does not divide 4 devices");
  ExpectRefused({"--plan=grid", "--pipeline=2x"}, "--pipeline=2x: a number is expected, or two");
  ExpectRefused({"--plan=grid", "--recompute=some"}, "--recompute: 'some': there are none, ");
  ExpectRefused({"--tensor=2"}, "--tensor is for --plan=grid");
  ExpectRefused({"--plan=megatron", "--context=2"}, "--context is for --plan=grid");
  ExpectRefused({"--attention=fast"}, "--attention=fast: there are flash and unfused");
  ExpectRefused({"--attention=unfused"}, "has no calls of fused attention");
  ExpectRefused({"--search=exhaustive", "--precision=bfloat16"}, "is for --precision=float32");
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
