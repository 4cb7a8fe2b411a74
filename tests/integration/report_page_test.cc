// --report: the page is written, and what cannot be is said before the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReportFlag : public testing::Test {
 protected:
  void SetUp() override {
    const std::string page = ScratchFile("probe.html");
    const ProgramResult probe = Optimize({"--report=" + page});
    if (probe.err.find("was built without") != std::string::npos) GTEST_SKIP() << probe.err;
  }
  static ProgramResult Optimize(std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"zoo:mlp?layers=2", "--machine=dgx_h100",
                                          "--nodes=1",        "--devices_per_node=4",
                                          "--budget=1",       "--cache=false"};
    arguments.push_back("--out=" + ScratchFile("page.plan"));
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunBinary("isomer-optimize", arguments);
  }
};

TEST_F(ReportFlag, WritesAPageThatNeedsNothingElse) {
  const std::string page = ScratchFile("page.html"), json = ScratchFile("page.json");
  const ProgramResult result = Optimize({"--report=" + page, "--json=" + json});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string html = ReadFile(page).value();
  EXPECT_THAT(html, HasSubstr("<script id=\"data\" type=\"application/json\">"));
  for (const char* outside : {" src=", "@import", "<link", "url(http"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  // The first line of the text is the page's headline, and the summary's.
  const std::string headline = result.out.substr(0, result.out.find('\n'));
  EXPECT_THAT(html, HasSubstr("\"headline\":\"" + headline + "\""));
  EXPECT_THAT(ReadFile(json).value(), HasSubstr("\"headline\": \"" + headline + "\""));
}

TEST_F(ReportFlag, OfAPlanFromAFile) {
  const std::string page = ScratchFile("priced.html");
  ASSERT_EQ(Optimize({}).exit_code, 0);
  const ProgramResult priced =
      RunBinary("isomer-optimize", {"--price=" + ScratchFile("page.plan"), "--machine=dgx_a100",
                                    "--nodes=1", "--devices_per_node=4", "--report=" + page});
  ASSERT_EQ(priced.exit_code, 0) << priced.err;
  EXPECT_THAT(ReadFile(page).value(), HasSubstr("\"derivation\":"));
}

TEST_F(ReportFlag, WhatCannotBeIsRefusedBeforeTheSearch) {
  const std::string missing = ScratchFile("none") + "/page.html";
  const auto expect_refused = [](const ProgramResult& result, const std::string& why) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  };
  expect_refused(Optimize({"--report=" + missing}), "the folder to write to does not exist");
  const std::string folder = ScratchFile("folder");
  std::filesystem::create_directory(folder);
  expect_refused(Optimize({"--report=" + folder}), "is a directory");
  expect_refused(RunBinary("isomer-optimize", {"--list_models", "--report=page.html"}),
                 "--report is of a plan");
  expect_refused(
      RunBinary("isomer-optimize", {"--describe", "--machine=dgx_h100", "--report=page.html"}),
      "--report is of a plan");
}

}  // namespace
}  // namespace isomer
