#include "pcg/evaluation/exact_number.h"

#include <cmath>

#include "pcg/support/check.h"
#include "pcg/support/hash.h"

namespace isomer {

ExactNumber::ExactNumber(const ExactNumber& other)
    : numerator_(other.numerator_),
      denominator_(other.denominator_),
      large_(other.large_ ? std::make_unique<mpq_class>(*other.large_) : nullptr) {}

ExactNumber& ExactNumber::operator=(const ExactNumber& other) {
  numerator_ = other.numerator_;
  denominator_ = other.denominator_;
  large_ = other.large_ ? std::make_unique<mpq_class>(*other.large_) : nullptr;
  return *this;
}

ExactNumber::ExactNumber(const mpq_class& value) {
  static_assert(sizeof(long) == sizeof(int64_t));
  if (value.get_num().fits_slong_p() && value.get_den().fits_slong_p()) {
    numerator_ = value.get_num().get_si();
    denominator_ = value.get_den().get_si();
  } else {
    large_ = std::make_unique<mpq_class>(value);
  }
}

mpq_class ExactNumber::Large() const {
  if (large_) return *large_;
  return mpq_class(static_cast<long>(numerator_), static_cast<unsigned long>(denominator_));
}

ExactNumber ExactNumber::FromDouble(double value) {
  ISOMER_CHECK(std::isfinite(value));
  return ExactNumber(mpq_class(value));
}

int ExactNumber::Sign() const {
  if (large_) return sgn(*large_);
  return (numerator_ > 0) - (numerator_ < 0);
}

std::optional<double> ExactNumber::AsDouble() const {
  const mpq_class value = Large();
  const double truncated = value.get_d();
  if (!std::isfinite(truncated) || mpq_class(truncated) != value) return std::nullopt;
  return truncated;
}

std::string ExactNumber::ToString() const {
  if (large_ || denominator_ != 1) return Large().get_str();
  return std::to_string(numerator_);
}

uint64_t ExactNumber::Hash() const { return HashBytes(ToString()); }

ExactNumber operator+(const ExactNumber& a, const ExactNumber& b) {
  ExactNumber sum;
  const bool whole = !a.large_ && !b.large_ && a.denominator_ == 1 && b.denominator_ == 1;
  if (whole && !__builtin_add_overflow(a.numerator_, b.numerator_, &sum.numerator_)) return sum;
  return ExactNumber(mpq_class(a.Large() + b.Large()));
}

ExactNumber operator*(const ExactNumber& a, const ExactNumber& b) {
  ExactNumber product;
  const bool whole = !a.large_ && !b.large_ && a.denominator_ == 1 && b.denominator_ == 1;
  if (whole && !__builtin_mul_overflow(a.numerator_, b.numerator_, &product.numerator_)) {
    return product;
  }
  return ExactNumber(mpq_class(a.Large() * b.Large()));
}

ExactNumber operator/(const ExactNumber& a, const ExactNumber& b) {
  ISOMER_CHECK(!b.IsZero());
  return ExactNumber(mpq_class(a.Large() / b.Large()));
}

bool operator==(const ExactNumber& a, const ExactNumber& b) {
  if (a.large_ || b.large_) return a.large_ && b.large_ && *a.large_ == *b.large_;
  return a.numerator_ == b.numerator_ && a.denominator_ == b.denominator_;
}

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
