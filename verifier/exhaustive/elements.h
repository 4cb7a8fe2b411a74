// Elements of tensors as polynomials in the elements of the operands.
//
// A value is a sum of products of atoms with coefficients modulo the prime 2^61 - 1 (any double is
// a dyadic rational, which is such a coefficient). Atoms are the operands' elements, each a symbol
// of its own, and functions of values: exp, tanh, the largest of several, [a < b]. Values and atoms
// are interned, so that equal values have one id: what two programs compute alike is the same for
// every input. Of the functions no more is assumed than this:
//   1/v       v * (1/v) = 1, where v is not zero; products are inverted factor by factor
//   max       associative, commutative, idempotent; max(a, b) of numbers
//   [a < b]   0 or 1, so that its square is itself; so are [a == b] and elements of bool tensors
//   where     where(c, a, b) = b + [c != 0] * (a - b)
//   exp       exp(a + b) = exp(a) * exp(b)
// Different ids prove nothing (max(x, y) + min(x, y) = x + y is beyond this): numbers decide then.
#ifndef ISOMER_VERIFIER_EXHAUSTIVE_ELEMENTS_H_
#define ISOMER_VERIFIER_EXHAUSTIVE_ELEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"

namespace isomer {

class SymbolicElements {
 public:
  using Value = int32_t;

  SymbolicElements();
  Value Number(double number);
  Value Integer(int64_t number);
  // The symbol called `name`; of a bool tensor it is 0 or 1.
  Value Symbol(int64_t name, bool is_bool = false);

  Value Sum(absl::Span<const Value> values);
  Value Product(absl::Span<const Value> values);
  Value Largest(absl::Span<const Value> values);
  // Of any ScalarOp with operands.
  Value Apply(ScalarOp op, absl::Span<const Value> operands);

  // The integer that a value is, if it is one.
  std::optional<int64_t> AsInteger(Value value) const;
  // Whether they are the same for all values of the atoms. False: not known to be.
  bool Equal(Value a, Value b);

 private:
  // Sorted by atom, exponents not zero; sorted by monomial, coefficients not zero.
  using Monomial = std::vector<std::pair<int32_t, int32_t>>;
  using Polynomial = std::vector<std::pair<int32_t, uint64_t>>;
  enum class Kind : int64_t { kSymbol, kBoolSymbol, kInverted, kLargest, kPower, kFunction };
  struct Atom {
    Kind kind;
    bool is_indicator;  // 0 or 1
    std::vector<Value> operands;
  };

  int32_t AtomId(Kind kind, int64_t name, bool is_indicator, std::vector<Value> operands);
  int32_t MonomialId(Monomial monomial);
  Value ValueId(Polynomial polynomial);
  Value OfAtom(int32_t atom, int32_t exponent = 1);
  Value Scaled(Value value, uint64_t coefficient);
  Value Multiply(Value a, Value b);
  Value MultiplyMonomials(int32_t a, int32_t b);
  Value Power(Value base, int exponent);
  Value Inverse(Value value);
  Value Exponential(Value value);
  Value IsZero(Value value);
  Value IsNegative(Value value);
  Value Function(ScalarOp op, absl::Span<const Value> operands, bool is_indicator);
  // [v], 1 - [v] or -[v] for an indicator atom: which of them, and the atom.
  enum class Shape { kPlain, kComplement, kNegated };
  std::optional<std::pair<Shape, Value>> IndicatorOf(Value value);
  // The value as numerator / denominator of small integers, if it is a number.
  std::optional<std::pair<int64_t, int64_t>> AsRational(Value value) const;

  std::vector<Atom> atoms_;
  std::vector<Monomial> monomials_;
  std::vector<Polynomial> values_;
  absl::flat_hash_map<std::vector<int64_t>, int32_t> atom_ids_;
  absl::flat_hash_map<Monomial, int32_t> monomial_ids_;
  absl::flat_hash_map<Polynomial, int32_t> value_ids_;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, Value> products_;  // of monomials
};

// The same in doubles, at one point: what different values differ in.
class NumericElements {
 public:
  using Value = double;
  static Value Number(double number) { return number; }
  static Value Integer(int64_t number) { return static_cast<double>(number); }
  static Value Sum(absl::Span<const Value> values);
  static Value Product(absl::Span<const Value> values);
  static Value Largest(absl::Span<const Value> values);
  static Value Apply(ScalarOp op, absl::Span<const Value> operands);
  static std::optional<int64_t> AsInteger(Value value);
  // Up to rounding; what is no number equals what is none.
  static bool Equal(Value a, Value b);
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_EXHAUSTIVE_ELEMENTS_H_
