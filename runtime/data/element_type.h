#ifndef ISOMER_RUNTIME_DATA_ELEMENT_TYPE_H_
#define ISOMER_RUNTIME_DATA_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace isomer {

// The numbers that files of data hold, by NumPy's names.
enum class ElementType {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
};

// "uint16".
absl::string_view ElementTypeName(ElementType type);
std::optional<ElementType> ElementTypeNamed(absl::string_view name);
// By NumPy's letter (b, u, i, f) and bytes: 'u', 2 is uint16.
std::optional<ElementType> ElementTypeOf(char letter, int64_t bytes);
int64_t ElementBytes(ElementType type);
bool IsFloatElement(ElementType type);

// Converts `count` elements. 64-bit integers above 2^53 are rounded, as a double holds them.
void ConvertElements(ElementType type, bool big_endian, const char* bytes, int64_t count,
                     double* values);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_ELEMENT_TYPE_H_
