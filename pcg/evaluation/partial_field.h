// A prime field in which a quotient by zero is undefined, and so is what is computed of it.
//
// In PrimeField it is zero, which keeps equal functions equal: 1/(1/x) is x everywhere. That x y /
// x is y holds only where x is not zero, and is tested here.
#ifndef ISOMER_PCG_EVALUATION_PARTIAL_FIELD_H_
#define ISOMER_PCG_EVALUATION_PARTIAL_FIELD_H_

#include <cstdint>

#include "pcg/evaluation/number.h"
#include "pcg/evaluation/prime_field.h"

namespace isomer {

class PartialField {
 public:
  constexpr PartialField() = default;                               // 0
  constexpr PartialField(PrimeField value, bool is_defined = true)  // NOLINT: the number
      : value_(value), is_defined_(is_defined) {}
  constexpr PrimeField value() const { return value_; }
  constexpr bool is_defined() const { return is_defined_; }

  friend PartialField operator+(PartialField a, PartialField b) {
    return {a.value_ + b.value_, a.is_defined_ && b.is_defined_};
  }
  friend PartialField operator-(PartialField a, PartialField b) {
    return {a.value_ - b.value_, a.is_defined_ && b.is_defined_};
  }
  friend PartialField operator*(PartialField a, PartialField b) {
    return {a.value_ * b.value_, a.is_defined_ && b.is_defined_};
  }
  friend PartialField operator/(PartialField a, PartialField b) {
    const bool is_zero = b.value_ == PrimeField();
    return {a.value_ / b.value_, a.is_defined_ && b.is_defined_ && !is_zero};
  }
  PartialField& operator+=(PartialField other) { return *this = *this + other; }
  friend constexpr bool operator==(PartialField, PartialField) = default;

 private:
  PrimeField value_;
  bool is_defined_ = true;
};

// False: both are defined, and they differ.
constexpr bool MayBeEqual(PartialField a, PartialField b) {
  return !a.is_defined() || !b.is_defined() || a == b;
}

// The functions of the field. What comparisons say of what is undefined means nothing.
template <>
struct Number<PartialField> {
  using Field = Number<PrimeField>;
  using T = PartialField;
  static T FromDouble(double value) { return Field::FromDouble(value); }
  static int64_t ToIndex(T value) { return Field::ToIndex(value.value()); }
  static bool Less(T a, T b) { return Field::Less(a.value(), b.value()); }
  static T Max(T a, T b) { return Of(Field::Max, a, b); }
  static T Pow(T a, T b) { return Of(Field::Pow, a, b); }
  static T Random(T a, T b) { return Of(Field::Random, a, b); }
  static T Exp(T x) { return Of(Field::Exp, x); }
  static T Log(T x) { return Of(Field::Log, x); }
  static T Sqrt(T x) { return Of(Field::Sqrt, x); }
  static T Tanh(T x) { return Of(Field::Tanh, x); }
  static T Erf(T x) { return Of(Field::Erf, x); }
  static T Sin(T x) { return Of(Field::Sin, x); }
  static T Cos(T x) { return Of(Field::Cos, x); }
  static T Atan(T x) { return Of(Field::Atan, x); }
  static T Floor(T x) { return Of(Field::Floor, x); }
  static T Round(T x) { return Of(Field::Round, x); }

 private:
  static T Of(PrimeField (*f)(PrimeField), T x) { return {f(x.value()), x.is_defined()}; }
  static T Of(PrimeField (*f)(PrimeField, PrimeField), T a, T b) {
    return {f(a.value(), b.value()), a.is_defined() && b.is_defined()};
  }
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_PARTIAL_FIELD_H_
