// Clusters of several kinds of devices, as a user plans for one and runs the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// Two nodes of as many cores, the first of which are as many times as fast.
std::string MachineFile(int devices, int times) {
  const std::string path = ScratchFile("unlike.textproto");
  const auto kind = [](const char* name, double rate) {
    return absl::StrCat("kinds { name: '", name, " core' peak_tflops: ", 0.1 * rate,
                        " memory_gib: 4 memory_gb_per_s: ", 10 * rate, " launch_us: ", 8 / rate,
                        " }\n");
  };
  std::ofstream(path) << "name: 'unlike'\n"
                      << kind("fast", times) << kind("slow", 1)
                      << "levels { name: 'node' count: " << devices
                      << " gb_per_s: 8 latency_us: 1 }\n"
                      << "levels { name: 'cluster' count: 2 gb_per_s: 4 latency_us: 2 "
                         "unit_kinds: 'fast core' unit_kinds: 'slow core' }\n";
  return path;
}

constexpr char kEightLayers[] =
    "zoo:gpt?layers=8&hidden=16&heads=2&vocabulary=32&seq=4&batch=8&tied=0";

void ExpectHoldsAndRuns(const std::string& plan) {
  const ProgramResult verdict = RunBinary("isomer-verify", {"plan", plan});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
  const ProgramResult run =
      RunBinary("isomer-run", {plan, "--check", "--check_executions=3", "--steps=2"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

// Stages of unlike numbers of calls: certified, equal to the bit however queues run, and the
// model's gradients.
TEST(UnlikeDevices, StagesAsLargeAsTheirDevicesAreFastHold) {
  const std::string plan = ScratchFile("uneven.plan");
  for (const char* schedule : {"1f1b", "zb_h1"}) {
    SCOPED_TRACE(schedule);
    const ProgramResult made =
        RunBinary("isomer-optimize",
                  {kEightLayers, "--machine=" + MachineFile(1, 4), "--plan=grid", "--pipeline=2",
                   absl::StrCat("--schedule=", schedule), "--loss_alone", "--out=" + plan});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("2 stages, 8 micro-batches"));
    EXPECT_THAT(made.out, HasSubstr("1 fast core"));
    ExpectHoldsAndRuns(plan);
  }
}

TEST(UnlikeDevices, WhatASearchFindsHoldsAndSaysWhatIsLost) {
  const std::string plan = ScratchFile("found.plan"), json = ScratchFile("found.json");
  const ProgramResult made =
      RunBinary("isomer-optimize", {kEightLayers, "--machine=" + MachineFile(2, 4), "--loss_alone",
                                    "--budget=4", "--out=" + plan, "--json=" + json});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("the 2 fast core alone"));
  EXPECT_THAT(made.out, HasSubstr("if all were 4 slow core"));
  EXPECT_THAT(made.out, HasSubstr("is lost by their being unlike"));
  std::ifstream file(json);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("\"step_without_loss_us\""));
  ExpectHoldsAndRuns(plan);
}

TEST(UnlikeDevices, NodesThatDoNotGoTogetherAreRefused) {
  for (const auto& [machine, says] : std::vector<std::pair<std::string, std::string>>{
           {"dgx_h100:2+dgx_a100", "'dgx_a100' is not MACHINE:NODES"},
           {"dgx_h100:1+k80_cluster:1", "one has NCCL's collectives"},
           {"dgx_h100:1+dgx_h100:1", "is named twice"}}) {
    const ProgramResult made = RunBinary("isomer-optimize", {kEightLayers, "--machine=" + machine,
                                                             "--out=" + ScratchFile("no.plan")});
    EXPECT_EQ(made.exit_code, 2) << made.out;
    EXPECT_THAT(made.err, HasSubstr(says));
  }
  const ProgramResult made =
      RunBinary("isomer-optimize", {kEightLayers, "--machine=dgx_h100:2+dgx_a100:2", "--nodes=4",
                                    "--out=" + ScratchFile("no.plan")});
  EXPECT_EQ(made.exit_code, 2) << made.out;
  EXPECT_THAT(made.err, HasSubstr("says how many nodes there are"));
}

}  // namespace
}  // namespace isomer
