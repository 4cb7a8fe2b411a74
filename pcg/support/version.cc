#include "pcg/support/version.h"

#include "absl/strings/str_cat.h"

namespace isomer {

std::string VersionText(absl::string_view program, const VersionFacts& facts) {
  std::string first(program), others;
  for (const auto& [name, value] : facts) {
    if (name == "version") {
      absl::StrAppend(&first, " ", value);
    } else {
      absl::StrAppend(&others, name, ": ", value, "\n");
    }
  }
  return absl::StrCat(first, "\n", others);
}

}  // namespace isomer
