// Trainings that are stopped, killed, moved and damaged go on from their checkpoints.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "pcg/support/file.h"
#include "tests/integration/losses.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string PlanFor(const std::string& name, std::vector<std::string> flags) {
  const std::string plan = ScratchFile(name + ".plan");
  flags.insert(flags.begin(), {SourceFile("models/data/digits_cnn.onnx"), "--machine=laptop_cpu",
                               "--cache=false", "--out=" + plan});
  const ProgramResult result = RunBinary("isomer-optimize", flags);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return plan;
}

std::vector<std::string> FlagsOfTraining(const std::string& plan, int64_t steps,
                                         std::vector<std::string> more = {}) {
  more.insert(more.begin(),
              {plan, absl::StrCat("--data=", SourceFile("models/data/digits.csv")),
               "--data_scale=0.0625", "--learning_rate=0.01", absl::StrCat("--steps=", steps)});
  return more;
}

std::vector<double> Behind(const std::vector<double>& losses, size_t steps) {
  return {losses.begin() + static_cast<std::ptrdiff_t>(steps), losses.end()};
}

std::string CleanFolder(const std::string& name) {
  const std::string folder = ScratchFile(name);
  std::filesystem::remove_all(folder);
  return folder;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A shell's exit code. $BIN is where the programs are.
int Shell(const std::string& command) {
  setenv("BIN", ISOMER_BIN_DIR, 1);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Quoted(const std::vector<std::string>& words) {
  return absl::StrCat("'", absl::StrJoin(words, "' '"), "'");
}

// However devices hold weights and states, in every precision and with every optimizer.
TEST(Checkpoint, ResumesToTheBit) {
  const std::vector<std::vector<std::string>> plans = {
      {"--devices_per_node=1", "--optimizer=adam"},
      {"--devices_per_node=2", "--plan=data_parallel", "--optimizer=adam"},
      {"--devices_per_node=4", "--plan=zero3", "--optimizer=adam"},
      {"--devices_per_node=4", "--optimizer=momentum"},
      {"--devices_per_node=2", "--plan=grid", "--pipeline=2", "--micro_batch_size=16",
       "--optimizer=adam"},
      {"--devices_per_node=2", "--plan=zero3", "--optimizer=adam", "--precision=bfloat16"},
      {"--devices_per_node=2", "--plan=data_parallel", "--precision=float16"},
  };
  for (size_t p = 0; p < plans.size(); ++p) {
    SCOPED_TRACE(absl::StrJoin(plans[p], " "));
    const std::string plan = PlanFor(absl::StrCat("bit", p), plans[p]);
    const std::string folder = CleanFolder(absl::StrCat("bit", p));
    const std::vector<double> all = LossesOf(FlagsOfTraining(plan, 12));
    const std::vector<double> first =
        LossesOf(FlagsOfTraining(plan, 5, {"--checkpoint_dir=" + folder, "--checkpoint_every=2"}));
    EXPECT_EQ(first, std::vector<double>(all.begin(), all.begin() + 5));
    EXPECT_THAT(NamesIn(folder), ElementsAre("step-000000002", "step-000000004", "step-000000005"));
    EXPECT_EQ(LossesOf(FlagsOfTraining(plan, 12, {"--checkpoint_dir=" + folder, "--resume"})),
              Behind(all, 5));
    // The newest three stay.
    EXPECT_THAT(NamesIn(folder), ElementsAre("step-000000004", "step-000000005", "step-000000012"));
  }
}

TEST(Checkpoint, GoesOnUnderAnotherPlan) {
  const std::string one = PlanFor("one", {"--devices_per_node=1", "--optimizer=adam"});
  const std::string folder = CleanFolder("moved");
  const std::vector<double> all = LossesOf(FlagsOfTraining(one, 16));
  LossesOf(FlagsOfTraining(one, 8, {"--checkpoint_dir=" + folder}));
  int i = 0;
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--devices_per_node=4", "--plan=zero3", "--optimizer=adam"},
           {"--devices_per_node=2", "--plan=data_parallel", "--optimizer=adam"},
           {"--devices_per_node=3", "--optimizer=adam"}}) {
    const std::string copy = CleanFolder(absl::StrCat("moved", ++i));
    std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
    const std::vector<double> losses = LossesOf(FlagsOfTraining(
        PlanFor(absl::StrCat("other", i), flags), 16, {"--checkpoint_dir=" + copy, "--resume"}));
    ASSERT_EQ(losses.size(), 8u);
    for (size_t s = 0; s < losses.size(); ++s) {
      EXPECT_NEAR(losses[s], all[8 + s], 1e-4 * all[8 + s]) << s;
    }
    // And back, to what it would have been.
    EXPECT_EQ(LossesOf(FlagsOfTraining(one, 17, {"--checkpoint_dir=" + copy, "--resume"})).size(),
              1u);
  }
}

// A bit of each part of each file.
TEST(Checkpoint, DamagedOnesAreNotTaken) {
  const std::string plan =
      PlanFor("damaged", {"--devices_per_node=2", "--plan=data_parallel", "--optimizer=momentum"});
  const std::string folder = CleanFolder("damaged");
  LossesOf(FlagsOfTraining(plan, 6, {"--checkpoint_dir=" + folder, "--checkpoint_every=3"}));
  const std::vector<std::string> go_on =
      FlagsOfTraining(plan, 6, {"--checkpoint_dir=" + folder, "--resume"});
  for (const char* file : {"checkpoint", "state.safetensors"}) {
    const std::string path = absl::StrCat(folder, "/step-000000006/", file);
    const std::string whole = ReadFile(path).value_or("");
    ASSERT_GT(whole.size(), 100u);
    for (const size_t at :
         {size_t{0}, size_t{9}, size_t{30}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
      const std::string copy = CleanFolder("damaged_copy");
      std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
      std::vector<std::string> flags = go_on;
      flags[flags.size() - 2] = "--checkpoint_dir=" + copy;
      const ProgramResult result = RunBinary("isomer-run", flags);
      EXPECT_EQ(result.exit_code, 0) << file << " " << at << result.err;
      EXPECT_THAT(result.err, HasSubstr("the checkpoint before it is taken")) << file << " " << at;
      EXPECT_THAT(result.out, HasSubstr("of step 3")) << file << " " << at;
    }
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, whole.size() - 5)).ok());
    const ProgramResult cut = RunBinary("isomer-run", go_on);
    EXPECT_EQ(cut.exit_code, 0) << cut.err;
    EXPECT_THAT(cut.out, HasSubstr("of step 3"));
    // That run wrote it again.
    EXPECT_EQ(ReadFile(path).value_or("").size(), whole.size());
  }
  for (const char* step : {"step-000000003", "step-000000006"}) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder, "/", step, "/checkpoint"), "no").ok());
  }
  const ProgramResult none = RunBinary("isomer-run", go_on);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("none of the checkpoints in"));
}

TEST(Checkpoint, WhatDoesNotFitIsRefused) {
  const std::string adam = PlanFor("adam", {"--devices_per_node=1", "--optimizer=adam"});
  const std::string sgd = PlanFor("sgd", {"--devices_per_node=1"});
  const std::string folder = CleanFolder("refused");
  LossesOf(FlagsOfTraining(adam, 2, {"--checkpoint_dir=" + folder}));
  const auto refused = [&](std::vector<std::string> flags) {
    flags.push_back("--quiet");
    const ProgramResult result = RunBinary("isomer-run", flags);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused(FlagsOfTraining(adam, 4, {"--checkpoint_dir=" + folder})),
              HasSubstr("has checkpoints up to step 2 already: --resume goes on from there"));
  EXPECT_THAT(refused(FlagsOfTraining(sgd, 4, {"--checkpoint_dir=" + folder, "--resume"})),
              HasSubstr("it is of adam, but the plan trains with sgd"));
  EXPECT_THAT(refused({"zoo:lenet", "--optimizer=adam", "--batch_size=4",
                       "--checkpoint_dir=" + folder, "--resume"}),
              HasSubstr("; the plan's model trains it as "));
  EXPECT_THAT(
      refused({"zoo:lenet", "--batch_size=4", "--mode=inference", "--checkpoint_dir=" + folder}),
      HasSubstr("is for training"));
  for (const char* flag :
       {"--checkpoint_every=2", "--keep_checkpoints=1", "--keep_every=2", "--resume"}) {
    EXPECT_THAT(refused(FlagsOfTraining(adam, 4, {flag})), HasSubstr("needs --checkpoint_dir"));
  }
  EXPECT_THAT(
      refused(FlagsOfTraining(adam, 4, {"--checkpoint_dir=" + folder, "--resume", "--check"})),
      HasSubstr("--check is of a training's first step"));
  EXPECT_THAT(refused(FlagsOfTraining(adam, 4, {"--checkpoint_dir=" + adam})),
              HasSubstr("Not a directory"));
  EXPECT_THAT(refused(FlagsOfTraining(
                  adam, 4, {"--checkpoint_dir=" + folder, "--resume", "--checkpoint_every=-1"})),
              HasSubstr("must not be negative"));
  EXPECT_THAT(NamesIn(folder), ElementsAre("step-000000002"));
}

// The disk, or a limit, has no room: one line, and no part of a checkpoint.
TEST(Checkpoint, NoRoomIsSaidAtOnce) {
  const std::string plan = PlanFor("room", {"--devices_per_node=1", "--optimizer=adam"});
  const std::string folder = CleanFolder("room"), said = ScratchFile("said");
  EXPECT_EQ(Shell(absl::StrCat("ulimit -f 8; exec $BIN/isomer-run ",
                               Quoted(FlagsOfTraining(plan, 4, {"--checkpoint_dir=" + folder})),
                               " > /dev/null 2> ", said)),
            3);
  EXPECT_THAT(ReadFile(said).value_or(""), HasSubstr("there is no room for"));
  EXPECT_THAT(NamesIn(folder), ElementsAre());
}

TEST(Checkpoint, SigtermWritesOneFirst) {
  const std::string plan =
      PlanFor("term", {"--devices_per_node=2", "--plan=data_parallel", "--optimizer=adam"});
  const std::string folder = CleanFolder("term"), said = ScratchFile("term.out");
  EXPECT_EQ(Shell(absl::StrCat(
                "$BIN/isomer-run ",
                Quoted(FlagsOfTraining(plan, 1000000,
                                       {"--checkpoint_dir=" + folder, "--checkpoint_every=5"})),
                " > ", said, " & pid=$!; while [ ! -d ", folder,
                "/step-000000005 ]; do sleep 0.02; done; kill -TERM $pid; wait $pid")),
            3);
  EXPECT_THAT(ReadFile(said).value_or(""), HasSubstr("stopped by SIGTERM; --resume goes on"));
  const std::vector<std::string> names = NamesIn(folder);
  ASSERT_FALSE(names.empty());
  const int64_t steps = std::atoll(names.back().c_str() + 5);
  const std::vector<double> all = LossesOf(FlagsOfTraining(plan, steps + 3));
  EXPECT_EQ(LossesOf(FlagsOfTraining(plan, steps + 3, {"--checkpoint_dir=" + folder, "--resume"})),
            Behind(all, static_cast<size_t>(steps)));
}

// At any moment: what there is then is whole, and the run goes on as if nothing had been.
TEST(Checkpoint, SurvivesKills) {
  const std::string plan =
      PlanFor("kill", {"--devices_per_node=2", "--plan=zero3", "--optimizer=adam"});
  const std::string folder = CleanFolder("kill");
  constexpr int kSteps = 120;
  const std::vector<double> all = LossesOf(FlagsOfTraining(plan, kSteps));
  for (int kill = 1; kill <= 4; ++kill) {
    Shell(absl::StrCat("timeout --signal=KILL ", 0.25 + 0.13 * kill, " $BIN/isomer-run ",
                       Quoted(FlagsOfTraining(plan, kSteps - 1,
                                              {"--checkpoint_dir=" + folder, "--checkpoint_every=1",
                                               "--resume", "--quiet"})),
                       " > /dev/null"));
  }
  const std::string json = ScratchFile("kill.json");
  const ProgramResult result = RunBinary(
      "isomer-run",
      FlagsOfTraining(plan, kSteps, {"--checkpoint_dir=" + folder, "--resume", "--json=" + json}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, testing::Not(HasSubstr("is taken")));
  google::protobuf::Struct summary;
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(ReadFile(json).value_or(""), &summary).ok());
  const auto first = static_cast<size_t>(summary.fields().at("first_step").number_value());
  std::vector<double> losses;
  for (const auto& loss : summary.fields().at("loss").list_value().values()) {
    losses.push_back(loss.number_value());
  }
  EXPECT_EQ(losses, Behind(all, first));
  for (const std::string& name : NamesIn(folder)) EXPECT_NE(name[0], '.');
}

// The ranks that are left end at once, and one of them says how to go on.
TEST(Checkpoint, ALostRankIsToldWithTheStepToGoOnFrom) {
  const std::string plan =
      PlanFor("lost", {"--devices_per_node=2", "--plan=zero3", "--optimizer=adam"});
  const std::string folder = CleanFolder("lost"), said = ScratchFile("lost.err");
  const std::string run = absl::StrCat(
      "$BIN/isomer-run ",
      Quoted(FlagsOfTraining(
          plan, 1000000,
          {"--communicator=tcp", "--checkpoint_dir=" + folder, "--checkpoint_every=5", "--quiet"})),
      " > /dev/null 2> ");
  EXPECT_EQ(Shell(absl::StrCat(
                "export WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29617; ", "RANK=0 ", run,
                said, " & first=$!; RANK=1 ", run, "/dev/null & second=$!; while [ ! -d ", folder,
                "/step-000000005 ]; do sleep 0.02; done; kill -KILL $second; ", "wait $first")),
            3);
  EXPECT_THAT(ReadFile(said).value_or(""), HasSubstr("; --resume goes on from step "));
}

// A weight that is cut, of which the model drops a part.
TEST(Checkpoint, WhatNothingComputesWithStaysAsItWas) {
  const std::string model = ScratchFile("cut.txt"), folder = CleanFolder("cut");
  ASSERT_TRUE(WriteFileAtomically(model,
                                  "%0 = input \"x\" : f32[4,8]\n"
                                  "%1 = weight \"w\" : f32[8,6]\n"
                                  "%2 = split(%1) {axis=1, sizes=[2,4]} : f32[8,2], f32[8,4]\n"
                                  "%3 = matmul(%0, %2.0) : f32[4,2]\n"
                                  "output \"y\" = %3\n")
                  .ok());
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {model, "--optimizer=adam", "--seed=3"});
    const ProgramResult result = RunBinary("isomer-run", flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  const std::string before = ScratchFile("before.npz"), after = ScratchFile("after.npz"),
                    whole = ScratchFile("whole.npz");
  run({"--learning_rate=0", "--steps=1", "--out=" + before});
  run({"--steps=5", "--out=" + whole});
  run({"--steps=3", "--checkpoint_dir=" + folder});
  run({"--steps=5", "--checkpoint_dir=" + folder, "--resume", "--out=" + after});
  EXPECT_EQ(ReadFile(after).value(), ReadFile(whole).value());
  const std::string first = ReadFile(before).value(), last = ReadFile(after).value();
  ASSERT_EQ(first.size(), last.size());
  // Of 48 numbers 32 are what they were: many more bytes are equal than of 16.
  int64_t equal = 0;
  for (size_t i = 0; i < first.size(); ++i) equal += first[i] == last[i] ? 1 : 0;
  EXPECT_GT(equal, static_cast<int64_t>(first.size()) - 16 * 4 - 3 * 4);
}

// Such as hosts of which each has a folder of that name.
TEST(Checkpoint, AllProcessesNeedOneFolder) {
  const std::string plan = PlanFor("blind", {"--devices_per_node=2", "--plan=data_parallel"});
  const std::string folder = CleanFolder("blind"), other = CleanFolder("blind_other"),
                    said = ScratchFile("blind.err");
  const auto run = [&](const std::string& in) {
    return absl::StrCat("$BIN/isomer-run ",
                        Quoted(FlagsOfTraining(
                            plan, 4, {"--communicator=tcp", "--checkpoint_dir=" + in, "--quiet"})));
  };
  EXPECT_EQ(Shell(absl::StrCat("export WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29618; ",
                               "RANK=1 ", run(other), " > /dev/null 2>&1 & RANK=0 ", run(folder),
                               " > /dev/null 2> ", said)),
            2);
  EXPECT_THAT(ReadFile(said).value_or(""),
              HasSubstr("rank 1 does not see what rank 0 writes there; all need one folder"));
  EXPECT_THAT(NamesIn(folder), ElementsAre());
}

// Each process writes what its device has; threads go on from it.
TEST(Checkpoint, ProcessesWriteOneTogether) {
  if (RunBinary("isomer-run", {SourceFile("models/data/digits_cnn.onnx"), "--communicator=mpi"})
          .err.find("no MPI") != std::string::npos) {
    GTEST_SKIP() << "this build has no MPI";
  }
  const std::string plan =
      PlanFor("mpi", {"--devices_per_node=4", "--plan=zero3", "--optimizer=adam"});
  const std::vector<double> all = LossesOf(FlagsOfTraining(plan, 8));
  const std::string folder = CleanFolder("mpi");
  const ProgramResult written = RunUnderMpirun(
      4, "isomer-run",
      FlagsOfTraining(
          plan, 4, {"--communicator=mpi", "--checkpoint_dir=" + folder, "--checkpoint_every=2"}));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(NamesIn(folder), ElementsAre("step-000000002", "step-000000004"));
  EXPECT_THAT(NamesIn(folder + "/step-000000004"), ElementsAre("checkpoint", "state.safetensors"));
  EXPECT_EQ(LossesOf(FlagsOfTraining(plan, 6, {"--checkpoint_dir=" + folder, "--resume"})),
            std::vector<double>(all.begin() + 4, all.begin() + 6));
  // And processes from what threads wrote.
  const std::string json = ScratchFile("mpi.json");
  const ProgramResult read = RunUnderMpirun(
      4, "isomer-run",
      FlagsOfTraining(
          plan, 8,
          {"--communicator=mpi", "--checkpoint_dir=" + folder, "--resume", "--json=" + json}));
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("of step 6"));
  EXPECT_THAT(ReadFile(json).value_or(""), HasSubstr("\"last_step\": 8"));
}

}  // namespace
}  // namespace isomer
