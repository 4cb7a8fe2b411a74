#ifndef ISOMER_PCG_SUPPORT_GZIP_H_
#define ISOMER_PCG_SUPPORT_GZIP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace isomer {

// As a file of gzip (RFC 1952). The same for the same text.
std::string Gzip(absl::string_view text);

// WriteFileAtomically, compressed where the name ends with .gz.
absl::Status WriteTextOrGzip(const std::string& path, absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_GZIP_H_
