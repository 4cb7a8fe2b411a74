#ifndef ISOMER_PCG_SUPPORT_DATA_PATH_H_
#define ISOMER_PCG_SUPPORT_DATA_PATH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace isomer {

// Where a file that comes with Isomer lies ("rules/default.rules"): beside the running program
// (<prefix>/share/isomer for <prefix>/bin), else in the source tree that it was built from.
std::string DataPath(absl::string_view relative);

// From now on they lie below `folder`, where they do: of a library in a program of somebody else,
// beside which they are not. To be called before any other thread asks.
void SetDataFolder(absl::string_view folder);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_DATA_PATH_H_
