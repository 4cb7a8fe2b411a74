#include "pcg/evaluation/prime_field.h"

#include <cmath>

#include "pcg/support/hash.h"

namespace isomer {
namespace {

PrimeField Power(PrimeField base, uint64_t exponent) {
  PrimeField result = PrimeField::FromRaw(1);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}

}  // namespace

PrimeField PrimeField::FromDouble(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  const auto integer = static_cast<uint64_t>(std::ldexp(mantissa, 53));
  // 2^61 is 1, so 2^-k is 2^(61 - k).
  exponent = ((exponent - 53) % 61 + 61) % 61;
  const PrimeField magnitude = FromRaw(integer) * FromRaw(uint64_t{1} << exponent);
  return value < 0 ? PrimeField() - magnitude : magnitude;
}

PrimeField PrimeField::Inverse() const { return Power(*this, kPrime - 2); }

PrimeField PrimeField::Random(uint64_t seed) const {
  return FromRaw(HashCombine(seed, value_) % kPrime);
}

}  // namespace isomer
