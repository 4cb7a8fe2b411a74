// What ends trainings, and who starts them again. scripts/fault_campaign.py does worse to them.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::string PlanOfFaults() {
  const std::string plan = ScratchFile("faults.plan");
  const ProgramResult result =
      RunBinary("isomer-optimize", {SourceFile("models/data/digits_cnn.onnx"),
                                    "--machine=laptop_cpu", "--devices_per_node=2", "--plan=zero3",
                                    "--optimizer=adam", "--cache=false", "--out=" + plan});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return plan;
}

ProgramResult Train(const std::string& plan, const std::string& json,
                    const std::vector<std::string>& more) {
  std::vector<std::string> flags = {plan,
                                    absl::StrCat("--data=", SourceFile("models/data/digits.csv")),
                                    "--steps=12", "--quiet", "--json=" + ScratchFile(json)};
  flags.insert(flags.end(), more.begin(), more.end());
  return RunBinary("isomer-run", flags);
}

std::string LossText(const std::string& json) {
  const std::string text = ReadFile(ScratchFile(json)).value_or("");
  const size_t at = text.find("\"loss\": [");
  return text.substr(std::min(at, text.size()), text.find(']', at) - at);
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = ScratchFile(name);
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(Faults, ProcessesThatItStartsGiveTheLossesOfThreads) {
  const std::string plan = PlanOfFaults();
  EXPECT_EQ(Train(plan, "threads.json", {}).exit_code, 0);
  const ProgramResult result = Train(plan, "processes.json", {"--communicator=processes"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(LossText("threads.json"), "");
  EXPECT_EQ(LossText("processes.json"), LossText("threads.json"));
}

// The children get all flags as they were given, lists and hostile values, too.
TEST(Faults, ChildrenAreToldTheSame) {
  const std::string plan = PlanOfFaults(), folder = FreshFolder("a folder, with 'marks'");
  const ProgramResult result = Train(plan, "told.json",
                                     {"--restarts=2", "--checkpoint_dir=" + folder, "--noshuffle",
                                      "--checkpoint_every=4", "--learning_rate=0.0123"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Train(plan, "same.json", {"--noshuffle", "--learning_rate=0.0123"}).exit_code, 0);
  EXPECT_EQ(LossText("told.json"), LossText("same.json"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/step-000000012/checkpoint"));
}

// A network that cannot stand the rate that nobody chose for it is timed, and checked, all the
// same.
TEST(Faults, ALossOfRandomDataMayBeAnything) {
  const std::string model = ScratchFile("steep.txt");
  ASSERT_TRUE(WriteFileAtomically(model,
                                  "%0 = input \"x\" : f32[4,8]\n"
                                  "%1 = weight \"w\" : f32[8,8]\n"
                                  "%2 = matmul(%0, %1) : f32[4,8]\n"
                                  "%3 = mul(%2, %2) : f32[4,8]\n"
                                  "%4 = mul(%3, %3) : f32[4,8]\n"
                                  "output \"y\" = %4\n")
                  .ok());
  const ProgramResult timed = RunBinary("isomer-run", {model, "--steps=20", "--check"});
  EXPECT_EQ(timed.exit_code, 0) << timed.err;
  EXPECT_THAT(timed.err, HasSubstr("is not finite: the data are random"));
  EXPECT_THAT(timed.out, HasSubstr("20 steps on 1 devices"));
  EXPECT_THAT(timed.out, testing::Not(HasSubstr("-nan")));
  const ProgramResult chosen =
      RunBinary("isomer-run", {model, "--steps=20", "--learning_rate=0.1"});
  EXPECT_EQ(chosen.exit_code, 2);
  EXPECT_THAT(chosen.err, HasSubstr("try a lower --learning_rate"));
}

TEST(Faults, ANumberThatIsNotFiniteIsNamed) {
  const std::string plan = PlanOfFaults(), rates = ScratchFile("rates");
  ASSERT_TRUE(WriteFileAtomically(rates, "1 0.01\n5 0.01\n6 3.4e38\n7 0.01\n").ok());
  const std::string folder = FreshFolder("nan");
  const std::vector<std::string> flags = {"--schedule=" + rates, "--checkpoint_dir=" + folder,
                                          "--checkpoint_every=4"};
  const ProgramResult result = Train(plan, "nan.json", flags);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("the loss of step 7 is not finite; weight '"));
  EXPECT_THAT(result.err, HasSubstr("--resume goes on from step 4"));
  // It comes again, and is not started for ever.
  std::filesystem::remove_all(folder);
  std::vector<std::string> again = flags;
  again.insert(again.end(), {"--restarts=9", "--communicator=processes"});
  const ProgramResult in_vain = Train(plan, "vain.json", again);
  EXPECT_EQ(in_vain.exit_code, 3);
  EXPECT_THAT(in_vain.err, HasSubstr("the run failed; it failed 3 times behind step 4 without "
                                     "coming further; --resume goes on from step 4"));
}

// The step before a loss would show it: such weights are not kept.
TEST(Faults, NoCheckpointIsMadeOfWeightsThatAreNotFinite) {
  const std::string plan = PlanOfFaults(), folder = FreshFolder("poison");
  const ProgramResult result = Train(
      plan, "poison.json",
      {"--learning_rate=3e38", "--weight_decay=3e38", "--steps=1", "--checkpoint_dir=" + folder});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr("is not finite after step 1; no checkpoint is made of it"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Faults, FlagsThatDoNotGoTogetherAreRefused) {
  const std::string plan = PlanOfFaults();
  const auto refused = [&](const std::string& spec, const std::vector<std::string>& flags) {
    const ProgramResult result = Train(spec, "refused.json", flags);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  const std::string folder = "--checkpoint_dir=" + FreshFolder("refused_faults");
  EXPECT_THAT(refused(plan, {"--restarts=-1"}), HasSubstr("must not be negative"));
  EXPECT_THAT(refused(plan, {"--restarts=1"}), HasSubstr("needs --checkpoint_dir and"));
  EXPECT_THAT(refused(plan, {"--restarts=1", folder}), HasSubstr("and --checkpoint_every"));
  for (const char* communicator : {"mpi", "tcp"}) {
    EXPECT_THAT(refused(plan, {"--restarts=1", folder, "--checkpoint_every=2",
                               absl::StrCat("--communicator=", communicator)}),
                HasSubstr("others start the processes"));
  }
  EXPECT_THAT(refused(plan, {"--available_devices=echo 1"}), HasSubstr("needs --restarts"));
  EXPECT_THAT(refused(plan, {"--replan=true"}), HasSubstr("needs --restarts"));
  EXPECT_THAT(refused("zoo:lenet", {"--communicator=processes"}), HasSubstr("needs a plan"));
  EXPECT_THAT(refused("/no/such.plan", {"--communicator=processes"}), HasSubstr("no such file"));
  EXPECT_THAT(refused(plan, {"--stall_timeout=0.01"}), HasSubstr("0 is expected, or seconds"));
  EXPECT_THAT(refused(plan, {"--stall_timeout=-1"}), HasSubstr("0 is expected, or seconds"));
  // What a child refuses, one of them says; it is not started again.
  EXPECT_THAT(refused(plan, {"--communicator=processes", "--batch_size=4"}),
              HasSubstr("is of a model"));
  EXPECT_THAT(refused(plan, {"--communicator=processes", "--check_executions=1"}),
              HasSubstr("is for --communicator=threads"));
}

}  // namespace
}  // namespace isomer
