#include "pcg/ir/extent.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace isomer {

Extent Extent::Symbol(int id) {
  Extent extent;
  extent.terms_.emplace_back(id, 1);
  return extent;
}

int64_t Extent::value() const {
  if (!known()) std::abort();  // A bug: concrete code was given a symbolic size.
  return constant_;
}

Extent& Extent::operator+=(const Extent& other) {
  constant_ += other.constant_;
  if (other.terms_.empty()) return *this;
  std::vector<std::pair<int, int64_t>> merged;
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && a->first < b->first)) {
      merged.push_back(*a++);
    } else if (a == terms_.end() || b->first < a->first) {
      merged.push_back(*b++);
    } else {
      if (a->second + b->second != 0) merged.emplace_back(a->first, a->second + b->second);
      ++a, ++b;
    }
  }
  terms_ = std::move(merged);
  return *this;
}

Extent Extent::operator*(int64_t factor) const {
  if (factor == 0) return Extent();
  Extent result = *this;
  result.constant_ *= factor;
  for (auto& [symbol, coefficient] : result.terms_) coefficient *= factor;
  return result;
}

std::string Extent::ToString() const {
  std::string text;
  for (const auto& [symbol, coefficient] : terms_) {
    absl::StrAppend(&text, text.empty() ? "" : " + ");
    if (coefficient != 1) absl::StrAppend(&text, coefficient, "*");
    absl::StrAppend(&text, "s", symbol);
  }
  if (text.empty()) return absl::StrCat(constant_);
  if (constant_ != 0) absl::StrAppend(&text, " + ", constant_);
  return text;
}

}  // namespace isomer
