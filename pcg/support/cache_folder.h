#ifndef ISOMER_PCG_SUPPORT_CACHE_FOLDER_H_
#define ISOMER_PCG_SUPPORT_CACHE_FOLDER_H_

#include <string>

#include "absl/strings/string_view.h"

namespace isomer {

// Where things of this kind ("searches") are kept between runs: $XDG_CACHE_HOME/isomer/<kind>, or
// below ~/.cache. Empty: there is no such place.
std::string CacheFolder(absl::string_view kind);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_CACHE_FOLDER_H_
