// Mixtures that drop no tokens: a run counts what experts get, a plan has room for it, and a run
// that needs more ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/plan.h"
#include "pcg/profile/expert_loads.h"
#include "pcg/support/file.h"
#include "tests/integration/messages.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

// 8 tokens of a sequence choose 4 of 16 experts each: an even load is 2.
constexpr char kSmallMixture[] =
    "zoo:qwen3_moe?layers=2&hidden=16&heads=4&key_heads=2&head_size=4&experts=16&chosen=4&"
    "intermediate=16&vocabulary=32&seq=8&batch=8&capacity_percent=100";

ProgramResult PlanWith(const std::string& plan, std::vector<std::string> flags) {
  flags.insert(flags.begin(),
               {kSmallMixture, "--machine=dgx_h100", "--nodes=1", "--devices_per_node=4",
                "--plan=grid", "--expert=4", "--loss_alone",
                "--without=data_parallel,zero3,megatron,published,grids", "--out=" + plan});
  return RunBinary("isomer-optimize", flags);
}

TEST(ExpertLoads, OfARunFeedThePlan) {
  const std::string loads = ScratchFile("first.loads"), plan = ScratchFile("first.plan");
  const ProgramResult counted =
      RunBinary("isomer-run", {kSmallMixture, "--steps=2", "--expert_loads=" + loads});
  ASSERT_EQ(counted.exit_code, 0) << counted.err;
  EXPECT_THAT(counted.out, HasSubstr("experts: the busiest got "));
  const auto read = LoadExpertLoads(loads);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->calls.size(), 2u);
  for (const ExpertLoad& call : read->calls) {
    EXPECT_EQ(call.groups, 2 * 8);
    EXPECT_EQ(std::accumulate(call.tokens.begin(), call.tokens.end(), int64_t{0}), 2 * 8 * 8 * 4);
    EXPECT_GT(call.most, 2);  // weights are random, tokens are
    EXPECT_LE(call.most, 8);
  }
  const ProgramResult made = PlanWith(plan, {"--expert_loads=" + loads});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr(absl::StrCat("the busiest expert got ", read->Imbalance())));
  EXPECT_THAT(made.out, HasSubstr(absl::StrCat("experts have room for ", read->Imbalance())));
  // Devices of a plan count what one device does, and nothing is dropped.
  const std::string again = ScratchFile("again.loads");
  const ProgramResult run =
      RunBinary("isomer-run", {plan, "--steps=2", "--check", "--expert_loads=" + again});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto of_plan = LoadExpertLoads(again);
  ASSERT_TRUE(of_plan.ok()) << of_plan.status();
  ASSERT_EQ(of_plan->calls.size(), 2u);
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(of_plan->calls[c].groups, read->calls[c].groups);
    EXPECT_EQ(std::accumulate(of_plan->calls[c].tokens.begin(), of_plan->calls[c].tokens.end(),
                              int64_t{0}),
              2 * 8 * 8 * 4);
  }
  // The first step, before any update, has the same tokens in the same experts.
  const std::string one = ScratchFile("one.loads"), other = ScratchFile("other.loads");
  ASSERT_EQ(RunBinary("isomer-run", {plan, "--steps=1", "--expert_loads=" + one}).exit_code, 0);
  ASSERT_EQ(
      RunBinary("isomer-run", {kSmallMixture, "--steps=1", "--expert_loads=" + other}).exit_code,
      0);
  EXPECT_EQ(LoadExpertLoads(one)->calls[0].tokens, LoadExpertLoads(other)->calls[0].tokens);
  // Processes count together.
  const std::string apart = ScratchFile("apart.loads");
  const ProgramResult processes = RunBinary(
      "isomer-run", {plan, "--steps=1", "--communicator=processes", "--expert_loads=" + apart});
  ASSERT_EQ(processes.exit_code, 0) << processes.err;
  EXPECT_EQ(LoadExpertLoads(apart)->calls[1].tokens, LoadExpertLoads(one)->calls[1].tokens);
  // It is the user's model, with what it assumes.
  const ProgramResult judged =
      RunBinary("isomer-verify", {"plan", plan, std::string("--model=") + kSmallMixture});
  EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("no expert gets more than"));
}

TEST(ExpertLoads, MoreThanThePlanHasRoomForEndsTheRunByName) {
  const std::string plan = ScratchFile("even.plan"), json = ScratchFile("even.json");
  const ProgramResult made = PlanWith(plan, {"--expert_imbalance=1", "--json=" + json});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(ReadFile(json).value(), HasSubstr("\"expert_imbalance\": 1"));
  for (const std::string& communicator : {std::string("threads"), std::string("processes")}) {
    const ProgramResult run =
        RunBinary("isomer-run", {plan, "--steps=1", "--communicator=" + communicator});
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_THAT(run.err, HasSubstr("topk_routing 'layer"));
    EXPECT_THAT(run.err,
                HasSubstr("and has room for 2: the plan is for --expert_imbalance=1, and"));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  // The model itself drops them.
  EXPECT_EQ(RunBinary("isomer-run", {kSmallMixture, "--steps=1"}).exit_code, 0);
}

// What is sent, computed and kept grows with the room.
TEST(ExpertLoads, APlanIsPricedWithItsRoom) {
  std::vector<double> step_us, bytes;
  for (const std::string& imbalance : {std::string("1"), std::string("2"), std::string("4")}) {
    const std::string path = ScratchFile("priced.plan");
    ASSERT_EQ(PlanWith(path, {"--expert_imbalance=" + imbalance}).exit_code, 0);
    const Plan plan = LoadPlan(path).value();
    step_us.push_back(plan.predicted_step_us);
    bytes.push_back(static_cast<double>(plan.predicted_peak_bytes));
    const ProgramResult priced =
        RunBinary("isomer-optimize",
                  {"--price=" + path, "--machine=dgx_h100", "--nodes=1", "--devices_per_node=4"});
    ASSERT_EQ(priced.exit_code, 0) << priced.err;
    EXPECT_THAT(priced.out, HasSubstr("experts have room for " + imbalance + " times"));
  }
  EXPECT_TRUE(std::is_sorted(step_us.begin(), step_us.end()));
  EXPECT_LT(bytes[0], bytes[1]);
  EXPECT_LT(bytes[1], bytes[2]);
}

TEST(ExpertLoads, FlagsThatDoNotApplyAreRefused) {
  const std::string out = "--out=" + ScratchFile("refused.plan");
  const auto optimize = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--machine=laptop_cpu", out});
    const ProgramResult result = RunBinary("isomer-optimize", arguments);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_THAT(optimize({"zoo:mlp", "--expert_imbalance=1.5"}),
              HasSubstr("--expert_imbalance: mlp sends no tokens to experts"));
  EXPECT_THAT(optimize({kSmallMixture, "--expert_imbalance=0.5"}),
              HasSubstr("--expert_imbalance=0.5: it is 1, the even load, to "));
  EXPECT_THAT(optimize({kSmallMixture, "--expert_imbalance=2", "--expert_loads=F"}),
              HasSubstr("--expert_loads does not go with --expert_imbalance"));
  EXPECT_THAT(optimize({kSmallMixture, "--expert_loads=/nowhere"}), HasSubstr("/nowhere"));
  const ProgramResult run =
      RunBinary("isomer-run", {"zoo:mlp", "--expert_loads=" + ScratchFile("no.loads")});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--expert_loads: mlp sends no tokens to experts"));
}

}  // namespace
}  // namespace isomer
