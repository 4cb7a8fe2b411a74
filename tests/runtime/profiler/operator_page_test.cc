#include "runtime/profiler/operator_page.h"

#include <gtest/gtest.h>

#include "pcg/support/file.h"

namespace isomer {
namespace {

TEST(OperatorPage, IsWhatIsInTheDocuments) {
  const auto page = OperatorPage();
  ASSERT_TRUE(page.ok()) << page.status();
  const auto committed = ReadFile(std::string(ISOMER_SOURCE_DIR) + "/docs/operators.md");
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_TRUE(*page == *committed)
      << "make it again: isomer-profile --list_operators > docs/operators.md";
}

}  // namespace
}  // namespace isomer
