#include "tests/integration/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

// Sizes of files and the like, which change with what is not a message.
std::string WithoutLongNumbers(const std::string& text) {
  constexpr size_t kLong = 4;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end - i >= kLong) {
      absl::StrAppend(&out, "####");
    } else {
      absl::StrAppend(&out, text.substr(i, std::max<size_t>(end - i, 1)));
    }
    i = std::max(end, i + 1);
  }
  return out;
}

// A file that lines are appended to, in place of the check.
constexpr char kRecord[] = "ISOMER_RECORD_MESSAGES";

const std::set<std::string>& Golden() {
  static const std::set<std::string>* const lines = [] {
    const std::string text = ReadFile(SourceFile("tests/integration/messages.txt")).value_or("");
    return new std::set<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()));
  }();
  return *lines;
}

}  // namespace

void ExpectGoldenMessages(const std::string& program, const std::string& err) {
  const std::string folder = ScratchFile("");
  const std::string text = absl::StrReplaceAll(
      err, {{folder, "$TMP/"}, {absl::StrCat(ISOMER_SOURCE_DIR, "/"), "$SOURCE/"}});
  const char* const record = std::getenv(kRecord);
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::string message = WithoutLongNumbers(absl::StrCat(program, ": ", line));
    if (record == nullptr) {
      EXPECT_TRUE(Golden().contains(message))
          << "not in tests/integration/messages.txt (scripts/update_messages.sh):\n"
          << message;
    } else if (std::FILE* const file = std::fopen(record, "a"); file != nullptr) {
      std::fputs(absl::StrCat(message, "\n").c_str(), file);
      std::fclose(file);
    }
  }
}

}  // namespace isomer
