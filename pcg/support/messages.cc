#include "pcg/support/messages.h"

#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/progress.h"

ABSL_FLAG(bool, quiet, false, "no progress and no notes, only results and errors");

namespace isomer {

bool IsQuiet() { return absl::GetFlag(FLAGS_quiet); }

void PrintNote(absl::string_view text) {
  if (IsQuiet()) return;
  EraseProgressLine();
  std::fputs(absl::StrCat("note: ", text, "\n").c_str(), stderr);
}

}  // namespace isomer
