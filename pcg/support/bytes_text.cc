#include "pcg/support/bytes_text.h"

#include "absl/strings/str_format.h"

namespace isomer {

std::string BytesText(int64_t bytes) {
  if (bytes >= int64_t{1} << 30) {
    return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
  }
  if (bytes >= 1 << 20) {
    return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  }
  return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / (1 << 10));
}

}  // namespace isomer
