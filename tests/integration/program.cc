#include "tests/integration/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/file.h"
#include "tests/integration/messages.h"

namespace isomer {
namespace {

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

ProgramResult RunCommand(std::string command, const std::vector<std::string>& arguments) {
  const std::string out = ScratchFile("stdout"), err = ScratchFile("stderr");
  for (const std::string& argument : arguments) absl::StrAppend(&command, " ", Quoted(argument));
  absl::StrAppend(&command, " >", Quoted(out), " 2>", Quoted(err), " </dev/null");
  const int status = std::system(command.c_str());
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = ReadFile(out).value_or("");
  result.err = ReadFile(err).value_or("");
  return result;
}

std::string Binary(const std::string& program) {
  return Quoted(absl::StrCat(ISOMER_BIN_DIR, "/", program));
}

}  // namespace

ProgramResult RunBinary(const std::string& program, const std::vector<std::string>& arguments) {
  ProgramResult result = RunCommand(Binary(program), arguments);
  if (result.exit_code == 1 || result.exit_code == 2) ExpectGoldenMessages(program, result.err);
  return result;
}

// --quiet: without what mpirun adds when a process ends with another code than 0.
ProgramResult RunUnderMpirun(int processes, const std::string& program,
                             const std::vector<std::string>& arguments) {
  return RunCommand(absl::StrCat("timeout 60 mpirun --quiet --oversubscribe --bind-to none ",
                                 geteuid() == 0 ? "--allow-run-as-root " : "", "-n ", processes,
                                 " ", Binary(program)),
                    arguments);
}

std::string SourceFile(const std::string& path) {
  return absl::StrCat(ISOMER_SOURCE_DIR, "/", path);
}

std::string ScratchFile(const std::string& name) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string test_name =
      test == nullptr ? "shared" : absl::StrCat(test->test_suite_name(), ".", test->name());
  const std::string folder = absl::StrCat(testing::TempDir(), "/isomer-", getpid(), "-",
                                          absl::StrReplaceAll(test_name, {{"/", "_"}}));
  std::filesystem::create_directories(folder);
  return absl::StrCat(folder, "/", name);
}

}  // namespace isomer
