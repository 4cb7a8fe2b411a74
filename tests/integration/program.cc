#include "tests/integration/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

ProgramResult RunBinary(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string out = ScratchFile("stdout"), err = ScratchFile("stderr");
  std::string command = Quoted(absl::StrCat(ISOMER_BIN_DIR, "/", program));
  for (const std::string& argument : arguments) absl::StrAppend(&command, " ", Quoted(argument));
  absl::StrAppend(&command, " >", Quoted(out), " 2>", Quoted(err), " </dev/null");
  const int status = std::system(command.c_str());
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = ReadFile(out).value_or("");
  result.err = ReadFile(err).value_or("");
  return result;
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
