// A tiny JSON writer: build a tree of values, print it. Nothing here reads JSON.
//
//   Json json;
//   json["machine"] = "dgx_h100";
//   json["search"]["seconds"] = 1.5;             // objects keep the order of their keys
//   for (double loss : losses) json["loss"].Append(loss);
//   json.Print();
#ifndef ISOMER_PCG_SUPPORT_JSON_H_
#define ISOMER_PCG_SUPPORT_JSON_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace isomer {

class Json {
 public:
  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}                          // NOLINT: values read as such
  Json(bool value) : value_(value) {}                                // NOLINT
  Json(std::signed_integral auto value) : value_(int64_t{value}) {}  // NOLINT
  Json(std::unsigned_integral auto value) : value_(uint64_t{value}) {}  // NOLINT
  // Printed with the fewest digits that read back to the same number; NaN and infinities as null.
  Json(double value) : value_(value) {}                          // NOLINT
  Json(const char* value) : value_(std::string(value)) {}        // NOLINT
  Json(absl::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(std::string value) : value_(std::move(value)) {}          // NOLINT
  template <typename T>
  Json(const std::vector<T>& values) : value_(Array()) {  // NOLINT
    for (const T& value : values) Append(value);
  }
  // An empty object or array; null becomes either at the first key or element.
  static Json EmptyObject() { return Json(Value(Object())); }
  static Json EmptyArray() { return Json(Value(Array())); }

  // The value of `key`, null when it is new. REQUIRES: this is an object or null.
  Json& operator[](absl::string_view key);
  // REQUIRES: this is an array or null.
  void Append(Json element);

  // Indented by two spaces, ending in a newline. Bytes that are not UTF-8 are printed as U+FFFD.
  std::string Print() const;
  // The same without spaces and line ends.
  std::string PrintCompact() const;

 private:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value =
      std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object>;
  explicit Json(Value value) : value_(std::move(value)) {}
  // `indent` < 0: compact.
  void PrintTo(int indent, std::string* out) const;

  Value value_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_JSON_H_
