#include "runtime/logging/crc32c.h"

#include "pcg/support/crc32.h"

namespace isomer {

uint32_t Crc32c(absl::string_view bytes) {
  CastagnoliCrc crc;
  crc.Add(bytes);
  return crc.value();
}

uint32_t MaskedCrc32c(absl::string_view bytes) {
  constexpr uint32_t kMaskDelta = 0xa282ead8;
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

}  // namespace isomer
