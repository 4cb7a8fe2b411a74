#include "pcg/support/output_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace isomer {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    fs::create_directories(folder_ / "sub");
    std::ofstream(Path("model.onnx")) << "weights";
    fs::create_symlink("model.onnx", Path("link.onnx"));
    fs::create_hard_link(Path("model.onnx"), Path("twin.onnx"));
  }
  ~OutputFiles() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  static std::string ErrorOf(const std::vector<NamedFile>& outputs,
                             const std::vector<NamedFile>& inputs = {}) {
    absl::Status status = CheckAreApart(outputs, inputs);
    if (status.ok()) status = CheckCanWriteAll(outputs);
    return std::string(status.message());
  }

  const fs::path folder_ = fs::temp_directory_path() / ("output_files." + std::to_string(getpid()));
};

TEST_F(OutputFiles, NewAndOldFilesCanBeWritten) {
  for (const char* name : {"new.plan", "model.onnx", "link.onnx", "sub/new.plan", "sub/../x"}) {
    EXPECT_EQ(ErrorOf({{"--out", Path(name)}}), "") << name;
  }
  EXPECT_EQ(ErrorOf({{"--out", "new.plan"}}), "");
  EXPECT_FALSE(fs::exists(Path("new.plan"))) << "nothing is made";
  EXPECT_EQ(ErrorOf({{"--out", "/dev/null"}, {"--json", "/dev/null"}}), "");
}

TEST_F(OutputFiles, WhatCannotBeWrittenIsNamedWithItsFlag) {
  EXPECT_EQ(ErrorOf({{"--out", Path("none/x.plan")}}),
            "--out: " + Path("none/x.plan") + ": the folder to write to does not exist");
  EXPECT_EQ(ErrorOf({{"--json", Path("sub")}}), "--json: " + Path("sub") + ": is a directory");
  EXPECT_EQ(ErrorOf({{"--out", Path("model.onnx/x")}}),
            "--out: " + Path("model.onnx/x") + ": not a directory");
  if (geteuid() == 0) return;  // who may write everywhere
  fs::permissions(Path("sub"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(ErrorOf({{"--out", Path("sub/x.plan")}}), HasSubstr("permission denied"));
  fs::permissions(Path("sub"), fs::perms::owner_all);
}

TEST_F(OutputFiles, WhatIsReadIsNotLost) {
  for (const char* name : {"model.onnx", "link.onnx", "twin.onnx", "sub/../model.onnx"}) {
    EXPECT_EQ(ErrorOf({{"--out", Path(name)}}, {{"", Path("model.onnx")}}),
              "--out: " + Path(name) + ": it is read, and would be lost");
  }
  EXPECT_EQ(ErrorOf({{"--json", Path("twin.onnx")}}, {{"--profile", Path("link.onnx")}}),
            "--json: " + Path("twin.onnx") + ": it is read by --profile, and would be lost");
  EXPECT_EQ(ErrorOf({{"--out", Path("other.onnx")}}, {{"", Path("model.onnx")}}), "");
}

TEST_F(OutputFiles, TwoOfOneFileAreRefused) {
  EXPECT_EQ(ErrorOf({{"--dot", Path("new")}, {"--out", Path("sub/../new")}}),
            "--out: " + Path("sub/../new") + ": it is --dot's file, too");
}

}  // namespace
}  // namespace isomer
