// Exact rational numbers, for what is proved and for what proofs are used on.
//
// Execution computes in floating point and rounds; a proof must not. The numbers of rules, of the
// steps that use them and of the polynomials that the prover compares are rationals: 0.1 stands for
// the double nearest to a tenth, which is a fraction like any other, and 0.1 * 10 is not 1.
#ifndef ISOMER_PCG_EXACT_NUMBER_H_
#define ISOMER_PCG_EXACT_NUMBER_H_

#include <gmpxx.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/types/span.h"

namespace isomer {

class ExactNumber {
 public:
  ExactNumber() = default;                                          // 0
  ExactNumber(int64_t value) : value_(static_cast<long>(value)) {}  // NOLINT: an integer is one
  // The number that the double is. REQUIRES: finite.
  static ExactNumber FromDouble(double value);

  int Sign() const { return sgn(value_); }
  bool IsZero() const { return Sign() == 0; }
  // The double that the number is, if it is one: 1/3 and 2^-1080 are none. Zero is +0.
  std::optional<double> AsDouble() const;
  // "-3", "1/3"
  std::string ToString() const { return value_.get_str(); }
  // The same in every run.
  uint64_t Hash() const;

  friend ExactNumber operator+(const ExactNumber& a, const ExactNumber& b) {
    return ExactNumber(mpq_class(a.value_ + b.value_));
  }
  friend ExactNumber operator-(const ExactNumber& a, const ExactNumber& b) {
    return ExactNumber(mpq_class(a.value_ - b.value_));
  }
  friend ExactNumber operator*(const ExactNumber& a, const ExactNumber& b) {
    return ExactNumber(mpq_class(a.value_ * b.value_));
  }
  // REQUIRES: b is not zero.
  friend ExactNumber operator/(const ExactNumber& a, const ExactNumber& b) {
    return ExactNumber(mpq_class(a.value_ / b.value_));
  }
  friend ExactNumber operator-(const ExactNumber& a) { return ExactNumber(mpq_class(-a.value_)); }
  friend bool operator==(const ExactNumber& a, const ExactNumber& b) {
    return a.value_ == b.value_;
  }
  friend bool operator<(const ExactNumber& a, const ExactNumber& b) { return a.value_ < b.value_; }

 private:
  explicit ExactNumber(mpq_class value) : value_(std::move(value)) {}
  mpq_class value_;  // canonical
};

// The product, the quotient, if a double is exactly that; nothing is rounded. Operands that are not
// finite have none.
std::optional<double> ExactProduct(absl::Span<const double> factors);
std::optional<double> ExactQuotient(double a, double b);

}  // namespace isomer

#endif  // ISOMER_PCG_EXACT_NUMBER_H_
