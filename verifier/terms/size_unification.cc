#include "verifier/terms/size_unification.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pcg/operators/operators.h"

namespace isomer {

Extent Substituted(const Extent& extent, const Substitution& substitution) {
  Extent result = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) {
    auto at = substitution.find(symbol);
    result += (at == substitution.end() ? Extent::Symbol(symbol)
                                        : Substituted(at->second, substitution)) *
              coefficient;
  }
  return result;
}

namespace {

// Reads what Extent::ToString wrote.
Extent ParseExtent(absl::string_view text) {
  Extent extent;
  for (absl::string_view part : absl::StrSplit(text, " + ")) {
    const std::vector<absl::string_view> factors = absl::StrSplit(part, '*');
    int64_t coefficient = 1, symbol = 0;
    absl::string_view last = factors.back();
    if (factors.size() == 2 && !absl::SimpleAtoi(factors[0], &coefficient)) return extent;
    if (absl::ConsumePrefix(&last, "s") && absl::SimpleAtoi(last, &symbol)) {
      extent += Extent::Symbol(static_cast<int>(symbol)) * coefficient;
    } else if (absl::SimpleAtoi(last, &symbol)) {
      extent += symbol;
    }
  }
  return extent;
}

}  // namespace

std::optional<SizeConflict> ConflictOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kSizeMismatch);
  if (!payload) return std::nullopt;
  const std::vector<std::string> sizes = absl::StrSplit(std::string(*payload), '|');
  return SizeConflict{ParseExtent(sizes[0]), ParseExtent(sizes[1]), /*or_one=*/true};
}

bool IsBareSymbol(const Extent& extent) {
  return extent.constant() == 0 && extent.terms().size() == 1 && extent.terms()[0].second == 1;
}

namespace {

// 2*s0 - 2*s1 becomes s0 - s1.
Extent WithoutCommonFactor(const Extent& extent) {
  int64_t factor = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) factor = std::gcd(factor, coefficient);
  if (factor == 0) return extent;
  Extent reduced = extent.constant() / factor;
  for (const auto& [symbol, coefficient] : extent.terms()) {
    reduced += Extent::Symbol(symbol) * (coefficient / factor);
  }
  return reduced;
}

// True if no sizes >= 1 make `form` 0, because all its terms have one sign.
bool IsNeverZero(const Extent& form) {
  bool positive = form.constant() > 0, negative = form.constant() < 0;
  for (const auto& [symbol, coefficient] : form.terms()) {
    positive |= coefficient > 0;
    negative |= coefficient < 0;
  }
  return positive != negative;
}

}  // namespace

Unification Unify(const Extent& a, const Extent& b, Substitution* substitution) {
  const Extent difference = WithoutCommonFactor(a - b);
  if (difference == Extent(0)) return Unification::kDone;
  if (IsNeverZero(difference)) return Unification::kImpossible;
  auto set = [&](int symbol, const Extent& value) {
    for (const auto& [other, coefficient] : value.terms()) {
      if (other == symbol) return false;
    }
    (*substitution)[symbol] = value;
    return true;
  };
  if (IsBareSymbol(a) && set(a.terms()[0].first, b)) return Unification::kDone;
  if (IsBareSymbol(b) && set(b.terms()[0].first, a)) return Unification::kDone;
  for (const auto& [symbol, coefficient] : difference.terms()) {
    if (coefficient != 1 && coefficient != -1) continue;
    const Extent rest = difference - Extent::Symbol(symbol) * coefficient;
    if (set(symbol, rest * -coefficient)) return Unification::kDone;
  }
  return Unification::kInexpressible;
}

}  // namespace isomer
