#ifndef ISOMER_PCG_SUPPORT_UTF8_H_
#define ISOMER_PCG_SUPPORT_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace isomer {

// Length of the UTF-8 character that `text` starts with, 0 when it is not one (RFC 3629).
size_t Utf8CharacterLength(absl::string_view text);
// Whether it is nothing but such.
bool IsUtf8(absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_UTF8_H_
