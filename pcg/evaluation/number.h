// The number types that declarations are evaluated over, behind one set of functions.
#ifndef ISOMER_PCG_EVALUATION_NUMBER_H_
#define ISOMER_PCG_EVALUATION_NUMBER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pcg/evaluation/prime_field.h"
#include "pcg/support/hash.h"

namespace isomer {

template <typename T>
struct Number {
  static T FromDouble(double value) { return static_cast<T>(value); }
  static int64_t ToIndex(T value) { return static_cast<int64_t>(value); }
  // What is not a number stays so, whichever it is, as in ONNX, NumPy and PyTorch.
  static T Max(T a, T b) { return a > b || a != a ? a : b; }
  static bool Less(T a, T b) { return a < b; }
  static T Exp(T x) { return std::exp(x); }
  static T Log(T x) { return std::log(x); }
  static T Sqrt(T x) { return std::sqrt(x); }
  static T Tanh(T x) { return std::tanh(x); }
  static T Erf(T x) { return std::erf(x); }
  static T Sin(T x) { return std::sin(x); }
  static T Cos(T x) { return std::cos(x); }
  static T Atan(T x) { return std::atan(x); }
  static T Floor(T x) { return std::floor(x); }
  static T Round(T x) { return std::nearbyint(x); }  // The default mode is half to even.
  static T Pow(T a, T b) { return std::pow(a, b); }
  static T Random(T a, T b) {
    const uint64_t hash = HashCombine(static_cast<uint64_t>(static_cast<int64_t>(a)),
                                      static_cast<uint64_t>(static_cast<int64_t>(b)));
    return static_cast<T>(static_cast<double>(hash >> 40) * 0x1p-24);  // Exact in a float.
  }
};

// Element functions are random functions of the field. The maximum is that of a random total
// order that negation reverses, so that the laws of a lattice with an involution hold (max is
// commutative, associative, idempotent; min, which is -max(-a, -b), is its dual) and no others: a
// true identity of reals that uses more than these is not found, but a false one is never mistaken
// for true. Small integers are in their own order, so that coordinates compare as
// they are (triangles, causal masks, positions) and bools have their "or" and "and"; no random
// element is one of them.
template <>
struct Number<PrimeField> {
  static PrimeField FromDouble(double value) { return PrimeField::FromDouble(value); }
  static int64_t ToIndex(PrimeField value) { return static_cast<int64_t>(value.raw()); }
  // An order with zero in its middle, so that Relu neither keeps nor drops nearly all.
  static uint64_t Rank(PrimeField a) {
    constexpr uint64_t kIntegers = uint64_t{1} << 32, kMiddle = PrimeField::kPrime / 2;
    if (a.raw() < kIntegers) return kMiddle + a.raw();
    if (a.raw() > PrimeField::kPrime - kIntegers) return kMiddle - (PrimeField::kPrime - a.raw());
    constexpr uint64_t kOrder = 303;
    // The rank of the smaller of a and -a is random; the other's is its mirror image.
    if (a.raw() <= kMiddle) return a.Random(kOrder).raw();
    return 2 * kMiddle - PrimeField::FromRaw(PrimeField::kPrime - a.raw()).Random(kOrder).raw();
  }
  static PrimeField Max(PrimeField a, PrimeField b) { return Rank(a) > Rank(b) ? a : b; }
  static bool Less(PrimeField a, PrimeField b) { return Rank(a) < Rank(b); }
  static PrimeField Exp(PrimeField x) { return x.Random(2); }
  static PrimeField Log(PrimeField x) { return x.Random(3); }
  static PrimeField Sqrt(PrimeField x) { return x.Random(4); }
  static PrimeField Tanh(PrimeField x) { return x.Random(5); }
  static PrimeField Erf(PrimeField x) { return x.Random(6); }
  static PrimeField Sin(PrimeField x) { return x.Random(7); }
  static PrimeField Cos(PrimeField x) { return x.Random(8); }
  static PrimeField Atan(PrimeField x) { return x.Random(9); }
  static PrimeField Floor(PrimeField x) { return x.Random(10); }
  static PrimeField Round(PrimeField x) { return x.Random(11); }
  static PrimeField Pow(PrimeField a, PrimeField b) { return (a + b.Random(12)).Random(12); }
  static PrimeField Random(PrimeField a, PrimeField b) { return (a + b.Random(13)).Random(13); }
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_NUMBER_H_
