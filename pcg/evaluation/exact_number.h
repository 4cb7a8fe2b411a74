// Exact rational numbers, for what is proved and for what proofs are used on.
//
// Execution computes in floating point and rounds; a proof must not. The numbers of rules, of the
// steps that use them and of the polynomials that the prover compares are rationals: 0.1 stands for
// the double nearest to a tenth, which is a fraction like any other, and 0.1 * 10 is not 1.
#ifndef ISOMER_PCG_EVALUATION_EXACT_NUMBER_H_
#define ISOMER_PCG_EVALUATION_EXACT_NUMBER_H_

#include <gmpxx.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace isomer {

class ExactNumber {
 public:
  ExactNumber() = default;                           // 0
  ExactNumber(int64_t value) : numerator_(value) {}  // NOLINT: an integer is one
  ExactNumber(const ExactNumber& other);
  ExactNumber& operator=(const ExactNumber& other);
  ExactNumber(ExactNumber&&) = default;
  ExactNumber& operator=(ExactNumber&&) = default;
  // The number that the double is. REQUIRES: finite.
  static ExactNumber FromDouble(double value);

  int Sign() const;
  bool IsZero() const { return Sign() == 0; }
  // The double that the number is, if it is one: 1/3 and 2^-1080 are none. Zero is +0.
  std::optional<double> AsDouble() const;
  // "-3", "1/3"
  std::string ToString() const;
  // The same in every run.
  uint64_t Hash() const;

  friend ExactNumber operator+(const ExactNumber& a, const ExactNumber& b);
  friend ExactNumber operator-(const ExactNumber& a, const ExactNumber& b) { return a + b * -1; }
  friend ExactNumber operator*(const ExactNumber& a, const ExactNumber& b);
  // REQUIRES: b is not zero.
  friend ExactNumber operator/(const ExactNumber& a, const ExactNumber& b);
  friend bool operator==(const ExactNumber& a, const ExactNumber& b);

 private:
  explicit ExactNumber(const mpq_class& value);
  mpq_class Large() const;

  // Nearly all numbers of proofs are 1, -1 and small fractions. In lowest terms, the denominator
  // above zero; of a number that does not fit, large_ instead.
  int64_t numerator_ = 0, denominator_ = 1;
  std::unique_ptr<mpq_class> large_;
};

// The product, the quotient, if a double is exactly that; nothing is rounded. Operands that are not
// finite have none.
std::optional<double> ExactProduct(absl::Span<const double> factors);
std::optional<double> ExactQuotient(double a, double b);

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_EXACT_NUMBER_H_
