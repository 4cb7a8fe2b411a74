// isomer-run with processes in place of threads: the same numbers, and one voice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

bool HasMpi() {
  const ProgramResult result =
      RunBinary("isomer-run", {SourceFile("models/data/digits_cnn.onnx"), "--communicator=mpi"});
  return result.err.find("no MPI") == std::string::npos;
}

class MpiRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasMpi()) GTEST_SKIP() << "this build has no MPI";
  }

  // A plan of the digits network for so many devices.
  std::string Plan(int devices, const std::string& kind) {
    const std::string plan = ScratchFile(absl::StrCat(kind, devices, ".plan"));
    const ProgramResult result = RunBinary(
        "isomer-optimize", {SourceFile("models/data/digits_cnn.onnx"), "--machine=laptop_cpu",
                            absl::StrCat("--devices_per_node=", devices),
                            absl::StrCat("--plan=", kind), absl::StrCat("--out=", plan)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return plan;
  }

  // Flags of a short training run whose results go to files of that name.
  std::vector<std::string> Training(const std::string& plan, const std::string& name,
                                    std::vector<std::string> flags = {}) {
    flags.insert(
        flags.begin(),
        {plan, absl::StrCat("--data=", SourceFile("models/data/digits.csv")), "--data_scale=0.0625",
         "--steps=4", absl::StrCat("--json=", ScratchFile(name + ".json")),
         absl::StrCat("--out=", ScratchFile(name + ".model"))});
    return flags;
  }

  // The text between "key": and the end of its list.
  std::string List(const std::string& name, const std::string& key) {
    const std::string json = ReadFile(ScratchFile(name + ".json")).value_or("");
    const size_t at = json.find(absl::StrCat("\"", key, "\": ["));
    return at == std::string::npos ? "none" : json.substr(at, json.find(']', at) - at);
  }
};

TEST_F(MpiRun, GivesTheNumbersOfTheThreads) {
  for (const auto& [devices, kind] :
       {std::pair(2, "data_parallel"), std::pair(4, "data_parallel"), std::pair(2, "megatron")}) {
    const std::string plan = Plan(devices, kind);
    const ProgramResult threads = RunBinary("isomer-run", Training(plan, "threads"));
    ASSERT_EQ(threads.exit_code, 0) << threads.err;
    const ProgramResult processes = RunUnderMpirun(
        devices, "isomer-run",
        Training(plan, "mpi",
                 {"--communicator=mpi", absl::StrCat("--trace=", ScratchFile("trace.json"))}));
    ASSERT_EQ(processes.exit_code, 0) << processes.err;
    EXPECT_EQ(List("mpi", "loss"), List("threads", "loss"));
    EXPECT_NE(List("mpi", "loss"), "none");
    EXPECT_EQ(*ReadFile(ScratchFile("mpi.model")), *ReadFile(ScratchFile("threads.model")));
    // One process speaks.
    EXPECT_EQ(std::count(processes.out.begin(), processes.out.end(), '\n'), 1) << processes.out;
    EXPECT_THAT(*ReadFile(ScratchFile("trace.json")),
                HasSubstr(absl::StrCat("\"tid\": ", devices - 1)));
  }
}

TEST_F(MpiRun, GivesTheSameModelHoweverQueuesRun) {
  const std::string plan = Plan(2, "megatron");
  for (const std::string execution : {"inline", "threaded", "adversarial"}) {
    const ProgramResult result = RunUnderMpirun(
        2, "isomer-run",
        Training(plan, execution, {"--communicator=mpi", "--execution=" + execution}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(*ReadFile(ScratchFile(execution + ".model")), *ReadFile(ScratchFile("inline.model")))
        << execution;
  }
  const ProgramResult refused = RunUnderMpirun(
      2, "isomer-run", Training(plan, "mpi", {"--communicator=mpi", "--check_executions=2"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--check_executions is for --communicator=threads"));
}

TEST_F(MpiRun, PlanForAnotherNumberOfDevicesIsOneLine) {
  const ProgramResult result = RunUnderMpirun(
      3, "isomer-run", Training(Plan(2, "data_parallel"), "mpi", {"--communicator=mpi"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "error: --communicator=mpi: the plan is for 2 devices, but there are 3 processes\n");
}

// Started by a script, which says by variables who is who.
TEST(TcpRun, GivesWhatThreadsGive) {
  const ProgramResult planned = RunBinary(
      "isomer-optimize", {"zoo:mlp?layers=3&inputs=8&hidden=8&classes=4&batch=8", "--loss_alone",
                          "--machine=cpu_2cores", "--plan=zero3", "--out=" + ScratchFile("plan")});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const std::string run =
      absl::StrCat(ISOMER_BIN_DIR, "/isomer-run ", ScratchFile("plan"), " --steps=3 --out=");
  ASSERT_EQ(std::system(absl::StrCat(run, ScratchFile("threads.model"), " >/dev/null").c_str()), 0);
  // A port that is free as likely as not; another one, if it is not.
  int code = -1;
  for (int attempt = 0; attempt < 5 && code != 0; ++attempt) {
    const int port = 20000 + (getpid() * 7 + attempt * 1009) % 20000;
    const std::string as_rank =
        absl::StrCat("WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=", port, " ", run,
                     ScratchFile("tcp.model"), " --communicator=tcp >/dev/null");
    code =
        std::system(absl::StrCat("RANK=1 ", as_rank, " & RANK=0 ", as_rank, " && wait $!").c_str());
  }
  EXPECT_EQ(code, 0);
  EXPECT_EQ(*ReadFile(ScratchFile("tcp.model")), *ReadFile(ScratchFile("threads.model")));
}

TEST(TcpRun, SaysWhatIsNotSet) {
  const ProgramResult result = RunBinary("isomer-run", {"zoo:mlp?batch=8", "--communicator=tcp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "error: --communicator=tcp: RANK is not set; start the program with torchrun or srun "
            "(docs/running.md)\n");
}

// Rank 0 alone writes, and fails.
TEST_F(MpiRun, ErrorOfOneProcessIsOneLineAndEndsAll) {
  const ProgramResult result = RunUnderMpirun(
      2, "isomer-run",
      Training(Plan(2, "data_parallel"), "mpi", {"--communicator=mpi", "--out=/nowhere/at.model"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("/nowhere/at.model"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

}  // namespace
}  // namespace isomer
