// Elements of buffers as numbers, whatever their data type.
#ifndef ISOMER_RUNTIME_DEVICE_ELEMENTS_H_
#define ISOMER_RUNTIME_DEVICE_ELEMENTS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/support/half.h"

namespace isomer {

// The truth value of a byte.
struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  template <typename Number>
  explicit Bool(Number value) : byte(value != 0) {}
  operator int64_t() const { return byte != 0; }  // NOLINT
};

// Calls f(Element()) with the type that stores elements of `dtype`.
template <typename Function>
auto WithElementType(DataType dtype, Function f) {
  switch (dtype) {
    case DataType::kFloat32:
      return f(float());
    case DataType::kInt64:
      return f(int64_t());
    case DataType::kBFloat16:
      return f(BFloat16());
    case DataType::kFloat16:
      return f(Float16());
    case DataType::kInt32:
      return f(int32_t());
    case DataType::kBool:
      break;
  }
  return f(Bool());
}

// Likewise of a float type.
template <typename Function>
auto WithFloatType(DataType dtype, Function f) {
  switch (dtype) {
    case DataType::kBFloat16:
      return f(BFloat16());
    case DataType::kFloat16:
      return f(Float16());
    default:
      return f(float());
  }
}

// What sums of elements are held in before they are rounded.
template <typename Element>
using SumOf =
    std::conditional_t<std::is_same_v<Element, float> || std::is_same_v<Element, BFloat16> ||
                           std::is_same_v<Element, Float16>,
                       float, int64_t>;

// `value` as an element: floats are rounded to nearest, integers truncated towards zero (and
// clamped to what the type holds), Bool is whether it is not zero.
template <typename Element, typename Number>
Element ToElement(Number value) {
  if constexpr (std::is_integral_v<Element> && std::is_floating_point_v<Number>) {
    constexpr double kEnd = sizeof(Element) == 8 ? 0x1p63 : 0x1p31;
    if (std::isnan(value)) return 0;
    if (value >= kEnd) return static_cast<Element>(sizeof(Element) == 8 ? INT64_MAX : INT32_MAX);
    if (value < -kEnd) return static_cast<Element>(sizeof(Element) == 8 ? INT64_MIN : INT32_MIN);
  }
  if constexpr (std::is_class_v<Element> && std::is_integral_v<Number> &&
                !std::is_same_v<Element, Bool>) {
    return Element(static_cast<double>(value));
  } else {
    return Element(value);
  }
}

// `count` elements, to numbers and back. Number: float or double.
template <typename Number>
void LoadElements(DataType dtype, const void* from, int64_t count, Number* to);
template <typename Number>
void StoreElements(const Number* from, int64_t count, DataType dtype, void* to);
// Of floats: no infinity and no NaN.
bool AreFinite(DataType dtype, const void* data, int64_t count);
// Of floats, in double: infinite or NaN if and only if one of them is. The order in which they are
// added depends on their count alone.
double SumOfSquares(DataType dtype, const void* data, int64_t count);
// To numbers of `dtype`, as a buffer would hold them.
void RoundElements(DataType dtype, double* numbers, int64_t count);
void FillElements(double value, int64_t count, DataType dtype, void* to);

// to[i] += from[i], rounded once (of Bool: or). Of floats, `from` may be of less precision.
void AddElements(DataType from_dtype, const void* from, int64_t count, DataType dtype, void* to);
// to[i] = from[i], rounded. Of floats.
void ConvertElements(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                     void* to);
// to[i] = the sum over `terms`, in their order, rounded once. `to` may be one of them.
void SumElements(DataType dtype, absl::Span<const void* const> terms, int64_t count, void* to);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_ELEMENTS_H_
