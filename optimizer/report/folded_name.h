#ifndef ISOMER_OPTIMIZER_REPORT_FOLDED_NAME_H_
#define ISOMER_OPTIMIZER_REPORT_FOLDED_NAME_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace isomer {

// The name that repeated layers share: "layer12/query" -> "layer*/query".
inline std::string FoldedName(absl::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      folded += c;
    } else if (folded.empty() || folded.back() != '*') {
      folded += '*';
    }
  }
  return folded;
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_FOLDED_NAME_H_
