#include "pcg/exact_number.h"

#include <cmath>

#include "pcg/support/check.h"
#include "pcg/support/hash.h"

namespace isomer {

ExactNumber ExactNumber::FromDouble(double value) {
  ISOMER_CHECK(std::isfinite(value));
  return ExactNumber(mpq_class(value));
}

std::optional<double> ExactNumber::AsDouble() const {
  const double truncated = value_.get_d();
  if (!std::isfinite(truncated) || mpq_class(truncated) != value_) return std::nullopt;
  return truncated;
}

uint64_t ExactNumber::Hash() const { return HashBytes(ToString()); }

std::optional<double> ExactProduct(absl::Span<const double> factors) {
  ExactNumber product = 1;
  for (double factor : factors) {
    if (!std::isfinite(factor)) return std::nullopt;
    product = product * ExactNumber::FromDouble(factor);
  }
  return product.AsDouble();
}

std::optional<double> ExactQuotient(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || b == 0) return std::nullopt;
  return (ExactNumber::FromDouble(a) / ExactNumber::FromDouble(b)).AsDouble();
}

}  // namespace isomer
