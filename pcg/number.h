// The number types that declarations are evaluated over, behind one set of functions.
#ifndef ISOMER_PCG_NUMBER_H_
#define ISOMER_PCG_NUMBER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pcg/prime_field.h"

namespace isomer {

template <typename T>
struct Number {
  static T FromDouble(double value) { return static_cast<T>(value); }
  static int64_t ToIndex(T value) { return static_cast<int64_t>(value); }
  static T Max(T a, T b) { return a > b ? a : b; }
  static T Exp(T x) { return std::exp(x); }
  static T Log(T x) { return std::log(x); }
  static T Sqrt(T x) { return std::sqrt(x); }
  static T Tanh(T x) { return std::tanh(x); }
  static T Erf(T x) { return std::erf(x); }
};

// Element functions are random functions of the field. The maximum is that of a random total
// order, so that the laws of a lattice hold (max is commutative, associative, idempotent) and no
// others: a true identity of reals that uses more than these is not found, but a false one is
// never mistaken for true.
template <>
struct Number<PrimeField> {
  static PrimeField FromDouble(double value) { return PrimeField::FromDouble(value); }
  static int64_t ToIndex(PrimeField value) { return static_cast<int64_t>(value.raw()); }
  // An order with zero in its middle (rank 0.5003), so that Relu neither keeps nor drops nearly
  // all.
  static constexpr uint64_t kOrder = 303;
  static PrimeField Max(PrimeField a, PrimeField b) {
    return a.Random(kOrder).raw() > b.Random(kOrder).raw() ? a : b;
  }
  static PrimeField Exp(PrimeField x) { return x.Random(2); }
  static PrimeField Log(PrimeField x) { return x.Random(3); }
  static PrimeField Sqrt(PrimeField x) { return x.Random(4); }
  static PrimeField Tanh(PrimeField x) { return x.Random(5); }
  static PrimeField Erf(PrimeField x) { return x.Random(6); }
};

}  // namespace isomer

#endif  // ISOMER_PCG_NUMBER_H_
