#include "runtime/data/element_type.h"

#include <algorithm>
#include <cstring>

#include "pcg/support/half.h"

namespace isomer {
namespace {

struct ElementRow {
  ElementType type;
  absl::string_view name;
  char letter;
  int64_t bytes;
};

// In the order of the enum.
constexpr ElementRow kElements[] = {
    {ElementType::kBool, "bool", 'b', 1},       {ElementType::kUint8, "uint8", 'u', 1},
    {ElementType::kInt8, "int8", 'i', 1},       {ElementType::kUint16, "uint16", 'u', 2},
    {ElementType::kInt16, "int16", 'i', 2},     {ElementType::kUint32, "uint32", 'u', 4},
    {ElementType::kInt32, "int32", 'i', 4},     {ElementType::kUint64, "uint64", 'u', 8},
    {ElementType::kInt64, "int64", 'i', 8},     {ElementType::kFloat16, "float16", 'f', 2},
    {ElementType::kFloat32, "float32", 'f', 4}, {ElementType::kFloat64, "float64", 'f', 8},
};

const ElementRow& RowOf(ElementType type) { return kElements[static_cast<size_t>(type)]; }

template <typename T>
void ConvertAs(bool big_endian, const char* bytes, int64_t count, double* values) {
  for (int64_t i = 0; i < count; ++i) {
    char element[sizeof(T)];
    std::memcpy(element, bytes + i * sizeof(T), sizeof(T));
    if (big_endian) std::reverse(element, element + sizeof(T));
    T value;
    std::memcpy(static_cast<void*>(&value), element, sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

}  // namespace

absl::string_view ElementTypeName(ElementType type) { return RowOf(type).name; }

std::optional<ElementType> ElementTypeNamed(absl::string_view name) {
  for (const ElementRow& row : kElements) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<ElementType> ElementTypeOf(char letter, int64_t bytes) {
  for (const ElementRow& row : kElements) {
    if (row.letter == letter && row.bytes == bytes) return row.type;
  }
  return std::nullopt;
}

int64_t ElementBytes(ElementType type) { return RowOf(type).bytes; }

bool IsFloatElement(ElementType type) { return RowOf(type).letter == 'f'; }

void ConvertElements(ElementType type, bool big_endian, const char* bytes, int64_t count,
                     double* values) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return ConvertAs<uint8_t>(big_endian, bytes, count, values);
    case ElementType::kInt8:
      return ConvertAs<int8_t>(big_endian, bytes, count, values);
    case ElementType::kUint16:
      return ConvertAs<uint16_t>(big_endian, bytes, count, values);
    case ElementType::kInt16:
      return ConvertAs<int16_t>(big_endian, bytes, count, values);
    case ElementType::kUint32:
      return ConvertAs<uint32_t>(big_endian, bytes, count, values);
    case ElementType::kInt32:
      return ConvertAs<int32_t>(big_endian, bytes, count, values);
    case ElementType::kUint64:
      return ConvertAs<uint64_t>(big_endian, bytes, count, values);
    case ElementType::kInt64:
      return ConvertAs<int64_t>(big_endian, bytes, count, values);
    case ElementType::kFloat16:
      return ConvertAs<Float16>(big_endian, bytes, count, values);
    case ElementType::kFloat32:
      return ConvertAs<float>(big_endian, bytes, count, values);
    case ElementType::kFloat64:
      return ConvertAs<double>(big_endian, bytes, count, values);
  }
}

}  // namespace isomer
