#ifndef ISOMER_RUNTIME_LOGGING_CRC32C_H_
#define ISOMER_RUNTIME_LOGGING_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace isomer {

// The CRC-32C of some bytes (crc32.h), a byte at a time: logs are short.
uint32_t Crc32c(absl::string_view bytes);

// Rotated and shifted, as files have it that hold checksums of what holds checksums.
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/lib/hash/crc32c.h
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_LOGGING_CRC32C_H_
