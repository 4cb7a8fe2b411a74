#ifndef ISOMER_PCG_SUPPORT_DATA_PATH_H_
#define ISOMER_PCG_SUPPORT_DATA_PATH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace isomer {

// Where a file that comes with Isomer lies ("rules/default.rules"): beside the running program
// (<prefix>/share/isomer for <prefix>/bin), else in the source tree that it was built from.
std::string DataPath(absl::string_view relative);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_DATA_PATH_H_
