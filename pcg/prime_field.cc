#include "pcg/prime_field.h"

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
  exponent -= 53;
  const PrimeField scale = Power(FromRaw(2), static_cast<uint64_t>(std::abs(exponent)));
  const PrimeField magnitude =
      exponent >= 0 ? FromRaw(integer) * scale : FromRaw(integer) * scale.Inverse();
  return value < 0 ? PrimeField() - magnitude : magnitude;
}

PrimeField PrimeField::Inverse() const { return Power(*this, kPrime - 2); }

PrimeField PrimeField::Random(uint64_t seed) const {
  return FromRaw(HashCombine(seed, value_) % kPrime);
}

}  // namespace isomer
