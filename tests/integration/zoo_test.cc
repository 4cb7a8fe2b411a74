// Every network of the zoo, at its small size, is planned on two nodes of eight devices, certified,
// and trained for a step on as many virtual devices as its plan has, against the reference.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/zoo.h"
#include "tests/integration/program.h"

namespace isomer {

void PrintTo(const ZooModel& model, std::ostream* out) { *out << model.name; }

namespace {

class ZooPlanTest : public testing::TestWithParam<ZooModel> {};
INSTANTIATE_TEST_SUITE_P(Zoo, ZooPlanTest, testing::ValuesIn(ListModels()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ZooPlanTest, IsPlannedCertifiedAndTrained) {
  const std::string spec = absl::StrCat("zoo:", GetParam().name, "?", GetParam().small);
  const std::string plan = ScratchFile(GetParam().name + ".plan");
  const ProgramResult optimized =
      RunBinary("isomer-optimize", {spec, "--machine=dgx_h100", "--nodes=2", "--devices_per_node=8",
                                    "--budget=10", "--whole_machine", "--out=" + plan});
  ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run = RunBinary("isomer-run", {plan, "--steps=1", "--check"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(absl::StrContains(run.out, "agrees")) << run.out << run.err;
}

// Micro-batches of a recurrent network in a pipeline: no order of them has a circle.
TEST(ZooPrograms, AGridOfARecurrentNetworkIsPlanned) {
  const std::string plan = ScratchFile("nmt_grid.plan");
  const ProgramResult optimized = RunBinary(
      "isomer-optimize", {"zoo:nmt?steps=4", "--machine=k80_cluster", "--nodes=8",
                          "--batch_size=4096", "--loss_alone", "--budget=10", "--out=" + plan});
  ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
}

// Tokens are split over all devices outside of experts, which are split inside: what they look up
// goes there and back by all-to-all, and nothing is summed over devices but gradients of weights.
TEST(ZooPrograms, ExpertsOfAGridAreReachedByAllToAll) {
  for (const ZooModel& model : ListModels()) {
    if (model.name != "qwen3_moe" && model.name != "deepseek_v3" && model.name != "gpt_oss_20b") {
      continue;
    }
    const std::string plan = ScratchFile(model.name + "_grid.plan");
    const ProgramResult optimized =
        RunBinary("isomer-optimize", {absl::StrCat("zoo:", model.name, "?", model.small),
                                      "--machine=dgx_h100", "--nodes=1", "--devices_per_node=8",
                                      "--plan=grid", "--expert=4", "--out=" + plan});
    ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
    EXPECT_TRUE(absl::StrContains(optimized.out, "all_to_all forward")) << optimized.out;
    EXPECT_TRUE(absl::StrContains(optimized.out, "all_to_all backward")) << optimized.out;
    EXPECT_FALSE(absl::StrContains(optimized.out, "reduce_scatter forward")) << optimized.out;
    EXPECT_FALSE(absl::StrContains(optimized.out, "all_gather forward")) << optimized.out;
    const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
    EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
    const ProgramResult run = RunBinary("isomer-run", {plan, "--steps=1", "--check"});
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_TRUE(absl::StrContains(run.out, "agrees")) << run.out << run.err;
  }
}

TEST(ZooPrograms, ListModels) {
  const ProgramResult list = RunBinary("isomer-optimize", {"--list_models"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const ZooModel& model : ListModels()) {
    EXPECT_TRUE(absl::StrContains(list.out, absl::StrCat("\n", model.name, " "))) << model.name;
  }
}

TEST(ZooPrograms, DescribeOneConfiguration) {
  const ProgramResult text = RunBinary("isomer-optimize", {"zoo:lenet?batch=2", "--describe"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(absl::StrContains(text.out, "lenet: 19 operators, 61,706 parameters")) << text.out;
  const ProgramResult none = RunBinary("isomer-optimize", {"--describe"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(absl::StrContains(none.err, "needs one MODEL, or --machine")) << none.err;
}

}  // namespace
}  // namespace isomer
