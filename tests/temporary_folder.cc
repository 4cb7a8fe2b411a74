// Linked into every test program: a folder for the files of this process, gone when it ends, what
// programs keep between runs included. Tests name their files as they like; ctest runs each in a
// process of its own, several at a time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

class TemporaryFolder : public testing::Environment {
 public:
  void SetUp() override {
    std::string name = testing::TempDir() + "isomer-test-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr) << name;
    folder_ = name;
    setenv("TEST_TMPDIR", folder_.c_str(), /*overwrite=*/1);  // testing::TempDir reads it.
    setenv("XDG_CACHE_HOME", folder_.c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_;
};

[[maybe_unused]] const testing::Environment* const kTemporaryFolder =
    testing::AddGlobalTestEnvironment(new TemporaryFolder);

}  // namespace
