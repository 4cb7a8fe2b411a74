// Digests of structures: what a cache keeps depends on all that they hold.
//
// A structure says what belongs to it in a function AddToDigest(Digest*, const T&) beside it. One
// that binds all fields by name, `const auto& [name, count, ..] = value;`, does not compile once a
// field is added and forgotten there.
#ifndef ISOMER_PCG_SUPPORT_DIGEST_H_
#define ISOMER_PCG_SUPPORT_DIGEST_H_

#include <bit>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "pcg/support/hash.h"

namespace isomer {

class Digest {
 public:
  uint64_t value() const { return value_; }

  template <typename... Values>
  Digest& Add(const Values&... values) {
    (AddOne(values), ...);
    return *this;
  }

 private:
  void AddWord(uint64_t word) { value_ = HashCombine(value_, word); }

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void AddOne(T value) { AddWord(static_cast<uint64_t>(value)); }
  void AddOne(double value) { AddWord(std::bit_cast<uint64_t>(value)); }
  void AddOne(absl::string_view text) { AddWord(HashBytes(text)); }
  template <typename T>
  void AddOne(const std::vector<T>& values) {
    AddWord(values.size());
    for (const auto& value : values) AddOne(static_cast<const T&>(value));
  }
  template <typename K, typename V>
  void AddOne(const std::map<K, V>& values) {
    AddWord(values.size());
    for (const auto& [key, value] : values) Add(key, value);
  }
  template <typename T>
  requires(std::is_class_v<T> &&
           !std::is_convertible_v<const T&, absl::string_view>) void AddOne(const T& value) {
    AddToDigest(this, value);
  }

  uint64_t value_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_DIGEST_H_
