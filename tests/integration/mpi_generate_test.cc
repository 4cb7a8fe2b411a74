// isomer-generate with ranks in place of processes: the same rules, to the byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::vector<std::string> SmallGeneration(const std::string& name,
                                         std::vector<std::string> flags = {}) {
  flags.insert(flags.begin(), {"--ops=relu,scale,matmul", "--max_ops=2",
                               absl::StrCat("--out=", ScratchFile(name + ".txt"))});
  return flags;
}

// A rules file without how long each proof took.
std::string RulesIn(const std::string& name) {
  std::string rules;
  for (absl::string_view line :
       absl::StrSplit(ReadFile(ScratchFile(name + ".txt")).value_or(""), '\n')) {
    if (!absl::StrContains(line, " seconds: ")) absl::StrAppend(&rules, line, "\n");
  }
  return rules;
}

bool GeneratesWithMpi() {
  const ProgramResult result = RunBinary(
      "isomer-generate", {"--communicator=mpi", absl::StrCat("--out=", ScratchFile("no.rules"))});
  EXPECT_EQ(result.exit_code, 2);
  return result.err.find("no MPI") == std::string::npos;
}

TEST(MpiGenerate, GivesTheRulesOfOneProcess) {
  if (!GeneratesWithMpi()) GTEST_SKIP() << "this build has no MPI";
  const ProgramResult alone = RunBinary("isomer-generate", SmallGeneration("alone", {"--jobs=1"}));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  const std::string expected = RulesIn("alone");
  EXPECT_THAT(expected, HasSubstr("matmul"));
  for (const int ranks : {1, 2, 3, 8}) {
    const std::string name = absl::StrCat("of", ranks);
    const ProgramResult result = RunUnderMpirun(
        ranks, "isomer-generate",
        SmallGeneration(name,
                        {"--communicator=mpi", absl::StrCat("--work_dir=", ScratchFile(name))}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(RulesIn(name), expected) << ranks;
    // One rank speaks.
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
  }
  const ProgramResult processes =
      RunBinary("isomer-generate", SmallGeneration("processes", {"--jobs=3"}));
  ASSERT_EQ(processes.exit_code, 0) << processes.err;
  EXPECT_EQ(RulesIn("processes"), expected);
}

TEST(MpiGenerate, WhatIsWrongIsOneLine) {
  const ProgramResult other =
      RunBinary("isomer-generate", SmallGeneration("other", {"--communicator=threads"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.err, "error: --communicator=threads: there are processes and mpi\n");
  if (!GeneratesWithMpi()) GTEST_SKIP() << "this build has no MPI";
  const ProgramResult alone =
      RunBinary("isomer-generate", SmallGeneration("alone", {"--communicator=mpi"}));
  EXPECT_EQ(alone.err, "error: --communicator=mpi: start the program with mpirun\n");
  // Only rank 0 looks at what is to be generated.
  const ProgramResult many = RunUnderMpirun(
      3, "isomer-generate", SmallGeneration("many", {"--communicator=mpi", "--max_ops=9"}));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_EQ(std::count(many.err.begin(), many.err.end(), '\n'), 1) << many.err;
  EXPECT_THAT(many.err, HasSubstr("--max_ops must be 1 to"));
}

}  // namespace
}  // namespace isomer
