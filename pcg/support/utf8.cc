#include "pcg/support/utf8.h"

namespace isomer {

size_t Utf8CharacterLength(absl::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const int lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return continues(1) ? 2 : 0;
  if (!continues(1) || !continues(2)) return 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead < 0xF0 || lead > 0xF4 || !continues(3)) return 0;
  const bool overlong = lead == 0xF0 && byte(1) < 0x90;
  const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || too_large ? 0 : 4;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace isomer
