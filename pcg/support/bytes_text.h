// Sizes of memory for people to read.
#ifndef ISOMER_PCG_SUPPORT_BYTES_TEXT_H_
#define ISOMER_PCG_SUPPORT_BYTES_TEXT_H_

#include <cstdint>
#include <string>

namespace isomer {

// "1.5 GiB".
std::string BytesText(int64_t bytes);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_BYTES_TEXT_H_
