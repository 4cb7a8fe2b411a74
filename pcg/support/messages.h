// What programs say on stderr besides errors: notes, and progress (progress.h). Results are
// stdout's.
#ifndef ISOMER_PCG_SUPPORT_MESSAGES_H_
#define ISOMER_PCG_SUPPORT_MESSAGES_H_

#include "absl/strings/string_view.h"

namespace isomer {

// --quiet: neither notes nor progress.
bool IsQuiet();

// "note: TEXT" as one line on stderr, but not if IsQuiet(). Thread-safe.
void PrintNote(absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_MESSAGES_H_
