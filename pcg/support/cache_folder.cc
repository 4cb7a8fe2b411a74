#include "pcg/support/cache_folder.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace isomer {

std::string CacheFolder(absl::string_view kind) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return absl::StrCat(cache, "/isomer/", kind);
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return absl::StrCat(home, "/.cache/isomer/", kind);
}

}  // namespace isomer
