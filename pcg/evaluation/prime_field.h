// Numbers modulo the Mersenne prime 2^61 - 1, for exact random testing of equalities.
#ifndef ISOMER_PCG_EVALUATION_PRIME_FIELD_H_
#define ISOMER_PCG_EVALUATION_PRIME_FIELD_H_

#include <cstdint>

namespace isomer {

class PrimeField {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

  constexpr PrimeField() = default;
  // Any double is a dyadic rational, mapped exactly: 0.125 is the inverse of 8.
  static PrimeField FromDouble(double value);
  // REQUIRES: value < kPrime.
  static constexpr PrimeField FromRaw(uint64_t value) { return PrimeField(value); }
  constexpr uint64_t raw() const { return value_; }

  friend PrimeField operator+(PrimeField a, PrimeField b) {
    const uint64_t sum = a.value_ + b.value_;
    return PrimeField(sum >= kPrime ? sum - kPrime : sum);
  }
  friend PrimeField operator-(PrimeField a, PrimeField b) {
    return PrimeField(a.value_ >= b.value_ ? a.value_ - b.value_ : a.value_ + kPrime - b.value_);
  }
  friend PrimeField operator*(PrimeField a, PrimeField b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a.value_) * b.value_;
    const uint64_t folded =
        static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
    return PrimeField(folded >= kPrime ? folded - kPrime : folded);
  }
  // Division by zero gives zero: a fixed value, so that equal functions stay equal.
  friend PrimeField operator/(PrimeField a, PrimeField b) { return a * b.Inverse(); }
  PrimeField& operator+=(PrimeField other) { return *this = *this + other; }
  friend constexpr bool operator==(PrimeField, PrimeField) = default;

  PrimeField Inverse() const;
  // A random function of the field, one for each `seed`.
  PrimeField Random(uint64_t seed) const;

 private:
  constexpr explicit PrimeField(uint64_t value) : value_(value) {}
  uint64_t value_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_PRIME_FIELD_H_
