// Numbers as files have them: the least significant byte first.
#ifndef ISOMER_PCG_SUPPORT_LITTLE_ENDIAN_H_
#define ISOMER_PCG_SUPPORT_LITTLE_ENDIAN_H_

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace isomer {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendLittleEndian(T value, std::string* bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// REQUIRES: sizeof(T) bytes lie there.
template <typename T>
T LittleEndianAt(const char* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_LITTLE_ENDIAN_H_
