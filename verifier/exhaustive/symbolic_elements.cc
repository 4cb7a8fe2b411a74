#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "pcg/support/check.h"
#include "verifier/exhaustive/elements.h"

namespace isomer {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t AddMod(uint64_t a, uint64_t b) { return (a + b) % kPrime; }
uint64_t Negative(uint64_t a) { return a == 0 ? 0 : kPrime - a; }
uint64_t MultiplyMod(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}
uint64_t PowerMod(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = MultiplyMod(result, base);
    base = MultiplyMod(base, base);
  }
  return result;
}
uint64_t InverseMod(uint64_t a) { return PowerMod(a, kPrime - 2); }

uint64_t OfDouble(double number) {
  ISOMER_CHECK(std::isfinite(number));
  int exponent;
  const double mantissa = std::frexp(number, &exponent);  // 2^53 times it is an integer
  const int64_t integer = static_cast<int64_t>(std::ldexp(mantissa, 53));
  exponent -= 53;
  const uint64_t size = static_cast<uint64_t>(integer < 0 ? -integer : integer) % kPrime;
  const uint64_t power = PowerMod(2, static_cast<uint64_t>(std::abs(exponent)));
  const uint64_t value = MultiplyMod(size, exponent < 0 ? InverseMod(power) : power);
  return integer < 0 ? Negative(value) : value;
}

constexpr int32_t kOne = 0;  // the monomial without atoms

}  // namespace

SymbolicElements::SymbolicElements() { MonomialId({}); }

int32_t SymbolicElements::AtomId(Kind kind, int64_t name, bool is_indicator,
                                 std::vector<Value> operands) {
  std::vector<int64_t> key = {static_cast<int64_t>(kind), name};
  key.insert(key.end(), operands.begin(), operands.end());
  const auto [at, is_new] = atom_ids_.try_emplace(key, static_cast<int32_t>(atoms_.size()));
  if (is_new) atoms_.push_back({kind, is_indicator, std::move(operands)});
  return at->second;
}

int32_t SymbolicElements::MonomialId(Monomial monomial) {
  const auto [at, is_new] =
      monomial_ids_.try_emplace(monomial, static_cast<int32_t>(monomials_.size()));
  if (is_new) monomials_.push_back(std::move(monomial));
  return at->second;
}

SymbolicElements::Value SymbolicElements::ValueId(Polynomial polynomial) {
  const auto [at, is_new] =
      value_ids_.try_emplace(polynomial, static_cast<int32_t>(values_.size()));
  if (is_new) values_.push_back(std::move(polynomial));
  return at->second;
}

SymbolicElements::Value SymbolicElements::OfAtom(int32_t atom, int32_t exponent) {
  return ValueId({{MonomialId({{atom, exponent}}), 1}});
}

SymbolicElements::Value SymbolicElements::Number(double number) {
  const uint64_t coefficient = OfDouble(number);
  return coefficient == 0 ? ValueId({}) : ValueId({{kOne, coefficient}});
}

SymbolicElements::Value SymbolicElements::Integer(int64_t number) {
  return Number(static_cast<double>(number));
}

SymbolicElements::Value SymbolicElements::Symbol(int64_t name, bool is_bool) {
  return OfAtom(AtomId(is_bool ? Kind::kBoolSymbol : Kind::kSymbol, name, is_bool, {}));
}

SymbolicElements::Value SymbolicElements::Sum(absl::Span<const Value> values) {
  if (values.size() == 1) return values[0];
  Polynomial all;
  for (Value value : values) all.insert(all.end(), values_[value].begin(), values_[value].end());
  std::sort(all.begin(), all.end());
  Polynomial sum;
  for (const auto& [monomial, coefficient] : all) {
    if (sum.empty() || sum.back().first != monomial) {
      if (!sum.empty() && sum.back().second == 0) sum.pop_back();
      sum.emplace_back(monomial, 0);
    }
    sum.back().second = AddMod(sum.back().second, coefficient);
  }
  if (!sum.empty() && sum.back().second == 0) sum.pop_back();
  return ValueId(std::move(sum));
}

SymbolicElements::Value SymbolicElements::Product(absl::Span<const Value> values) {
  Value product = Integer(1);
  for (Value value : values) product = Multiply(product, value);
  return product;
}

SymbolicElements::Value SymbolicElements::Scaled(Value value, uint64_t coefficient) {
  Polynomial scaled = values_[value];
  for (auto& term : scaled) term.second = MultiplyMod(term.second, coefficient);
  return ValueId(std::move(scaled));
}

SymbolicElements::Value SymbolicElements::Multiply(Value a, Value b) {
  std::vector<Value> terms;
  // Copies: products make new values.
  const Polynomial left = values_[a], right = values_[b];
  for (const auto& [m, c] : left) {
    for (const auto& [n, d] : right) {
      terms.push_back(Scaled(MultiplyMonomials(m, n), MultiplyMod(c, d)));
    }
  }
  return Sum(terms);
}

SymbolicElements::Value SymbolicElements::MultiplyMonomials(int32_t a, int32_t b) {
  const std::pair<int32_t, int32_t> key = std::minmax(a, b);
  const auto known = products_.find(key);
  if (known != products_.end()) return known->second;
  std::map<int32_t, int32_t> exponents;
  for (int32_t factor : {a, b}) {
    for (const auto& [atom, exponent] : monomials_[factor]) exponents[atom] += exponent;
  }
  Monomial monomial;
  std::vector<std::pair<Value, int32_t>> powers;  // of sums, to be multiplied out
  for (const auto& [atom, exponent] : exponents) {
    if (exponent == 0) continue;
    if (atoms_[atom].kind == Kind::kInverted && exponent > 0) {
      powers.emplace_back(atoms_[atom].operands[0], exponent);
    } else {
      monomial.emplace_back(atom, atoms_[atom].is_indicator ? 1 : exponent);
    }
  }
  Value product = ValueId({{MonomialId(std::move(monomial)), 1}});
  for (const auto& [base, exponent] : powers) product = Multiply(product, Power(base, exponent));
  products_[key] = product;
  return product;
}

SymbolicElements::Value SymbolicElements::Power(Value base, int exponent) {
  const std::vector<Value> factors(exponent, base);
  return Product(factors);
}

SymbolicElements::Value SymbolicElements::Inverse(Value value) {
  const Polynomial polynomial = values_[value];
  if (polynomial.empty()) return Function(ScalarOp::kDiv, {value}, false);
  // What all terms have in common is taken out, and the leading coefficient.
  std::map<int32_t, int32_t> common;
  for (size_t t = 0; t < polynomial.size(); ++t) {
    std::map<int32_t, int32_t> here;
    for (const auto& [atom, exponent] : monomials_[polynomial[t].first]) {
      if (!atoms_[atom].is_indicator) here[atom] = exponent;
    }
    if (t == 0) common = here;
    for (auto& [atom, exponent] : common) exponent = std::min(exponent, here[atom]);
    for (const auto& [atom, exponent] : here) {
      if (exponent < 0) common[atom] = std::min(common[atom], exponent);
    }
  }
  Value inverse = Integer(1), rest = value;
  for (const auto& [atom, exponent] : common) {
    if (exponent == 0) continue;
    rest = Multiply(rest, OfAtom(atom, -exponent));
    // An inverted sum to a negative power is a power of the sum.
    const bool is_sum = atoms_[atom].kind == Kind::kInverted && exponent < 0;
    inverse = Multiply(
        inverse, is_sum ? Power(atoms_[atom].operands[0], -exponent) : OfAtom(atom, -exponent));
  }
  const uint64_t leading = values_[rest][0].second;
  inverse = Scaled(inverse, InverseMod(leading));
  rest = Scaled(rest, InverseMod(leading));
  if (rest == Integer(1)) return inverse;
  return Multiply(inverse, OfAtom(AtomId(Kind::kInverted, 0, false, {rest}), -1));
}

// exp of each term by itself: exp(c * m) = E(m)^c where c is an integer.
SymbolicElements::Value SymbolicElements::Exponential(Value value) {
  Value product = Integer(1);
  const Polynomial polynomial = values_[value];
  for (const auto& [monomial, coefficient] : polynomial) {
    const Value term = ValueId({{monomial, 1}});
    const auto rational = AsRational(ValueId({{kOne, coefficient}}));
    const bool is_integer =
        rational && rational->second == 1 && std::abs(rational->first) <= 8 && monomial != kOne;
    const Value base = is_integer ? term : Scaled(term, coefficient);
    const int32_t atom = AtomId(Kind::kPower, static_cast<int64_t>(ScalarOp::kExp), false, {base});
    product =
        Multiply(product, OfAtom(atom, is_integer ? static_cast<int32_t>(rational->first) : 1));
  }
  return product;
}

SymbolicElements::Value SymbolicElements::Function(ScalarOp op, absl::Span<const Value> operands,
                                                   bool is_indicator) {
  return OfAtom(AtomId(Kind::kFunction, static_cast<int64_t>(op), is_indicator,
                       {operands.begin(), operands.end()}));
}

std::optional<std::pair<SymbolicElements::Shape, SymbolicElements::Value>>
SymbolicElements::IndicatorOf(Value value) {
  const Polynomial p = values_[value];
  if (p.empty() || p.size() > 2) return std::nullopt;
  const auto& [monomial, coefficient] = p.back();
  const bool is_indicator =
      !monomials_[monomial].empty() &&
      std::all_of(monomials_[monomial].begin(), monomials_[monomial].end(),
                  [&](const auto& factor) { return atoms_[factor.first].is_indicator; });
  if (!is_indicator) return std::nullopt;
  const Value indicator = ValueId({{monomial, 1}});
  if (p.size() == 1 && coefficient == 1) return std::pair(Shape::kPlain, indicator);
  if (p.size() == 1 && coefficient == kPrime - 1) return std::pair(Shape::kNegated, indicator);
  if (p.size() == 2 && p[0] == std::pair(kOne, uint64_t{1}) && coefficient == kPrime - 1) {
    return std::pair(Shape::kComplement, indicator);
  }
  return std::nullopt;
}

// [v == 0]
SymbolicElements::Value SymbolicElements::IsZero(Value value) {
  const Polynomial p = values_[value];
  if (p.empty()) return Integer(1);
  if (p.size() == 1 && p[0].first == kOne) return Integer(0);
  if (const auto indicator = IndicatorOf(value)) {
    if (indicator->first == Shape::kComplement) return indicator->second;
    return Sum({Integer(1), Scaled(indicator->second, kPrime - 1)});
  }
  return Function(ScalarOp::kEqual, {Scaled(value, InverseMod(p[0].second))}, true);
}

// [v < 0]
SymbolicElements::Value SymbolicElements::IsNegative(Value value) {
  if (values_[value].empty()) return Integer(0);
  if (const auto rational = AsRational(value)) return Integer(rational->first < 0 ? 1 : 0);
  return Function(ScalarOp::kLess, {value}, true);
}

SymbolicElements::Value SymbolicElements::Largest(absl::Span<const Value> values) {
  std::vector<Value> all;
  std::optional<Value> number;
  auto add = [&](Value value) {
    const auto rational = AsRational(value);
    if (!rational) {
      all.push_back(value);
      return;
    }
    if (!number) number = value;
    const auto largest = *AsRational(*number);
    if (rational->first * largest.second > largest.first * rational->second) number = value;
  };
  for (Value value : values) {
    const Polynomial& p = values_[value];
    const Monomial* only = p.size() == 1 && p[0].second == 1 ? &monomials_[p[0].first] : nullptr;
    const bool nested = only != nullptr && only->size() == 1 && (*only)[0].second == 1 &&
                        atoms_[(*only)[0].first].kind == Kind::kLargest;
    if (!nested) {
      add(value);
      continue;
    }
    for (Value operand : atoms_[(*only)[0].first].operands) add(operand);
  }
  if (number) all.push_back(*number);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() == 1) return all[0];
  // Of zeros and ones: any of them; of their negatives: minus all of them.
  std::vector<Value> none, every;
  for (Value value : all) {
    const auto indicator = IndicatorOf(value);
    if (!indicator) continue;
    if (indicator->first == Shape::kNegated) {
      every.push_back(indicator->second);
    } else {
      none.push_back(Sum({Integer(1), Scaled(value, kPrime - 1)}));
    }
  }
  if (none.size() == all.size()) return Sum({Integer(1), Scaled(Product(none), kPrime - 1)});
  if (every.size() == all.size()) return Scaled(Product(every), kPrime - 1);
  return OfAtom(AtomId(Kind::kLargest, 0, false, std::move(all)));
}

SymbolicElements::Value SymbolicElements::Apply(ScalarOp op, absl::Span<const Value> operands) {
  const Value a = operands[0], b = operands.size() > 1 ? operands[1] : 0;
  switch (op) {
    case ScalarOp::kAdd:
      return Sum(operands);
    case ScalarOp::kSub:
      return Sum({a, Scaled(b, kPrime - 1)});
    case ScalarOp::kMul:
      return Multiply(a, b);
    case ScalarOp::kDiv:
      return Multiply(a, Inverse(b));
    case ScalarOp::kMax:
      return Largest(operands);
    case ScalarOp::kLess:
      return IsNegative(Sum({a, Scaled(b, kPrime - 1)}));
    case ScalarOp::kEqual:
      return IsZero(Sum({a, Scaled(b, kPrime - 1)}));
    case ScalarOp::kWhere: {
      const Value no = operands[2], zero = IsZero(a);
      const Value nonzero = Sum({Integer(1), Scaled(zero, kPrime - 1)});
      return Sum({Multiply(nonzero, b), Multiply(zero, no)});
    }
    case ScalarOp::kExp:
      return Exponential(a);
    case ScalarOp::kFloor:
    case ScalarOp::kRound:
      return AsInteger(a) ? a : Function(op, operands, false);
    case ScalarOp::kPow: {
      const std::optional<int64_t> power = AsInteger(b);
      if (power && *power >= 0 && *power <= 4) return Power(a, static_cast<int>(*power));
      return Function(op, operands, false);
    }
    default:
      return Function(op, operands, false);
  }
}

std::optional<std::pair<int64_t, int64_t>> SymbolicElements::AsRational(Value value) const {
  const Polynomial& p = values_[value];
  if (p.empty()) return std::pair<int64_t, int64_t>(0, 1);
  if (p.size() != 1 || p[0].first != kOne) return std::nullopt;
  // Euclid's algorithm on the prime and the residue passes by the one fraction that is so small.
  constexpr int64_t kLargest = int64_t{1} << 24;
  int64_t r0 = static_cast<int64_t>(kPrime), r1 = static_cast<int64_t>(p[0].second);
  int64_t t0 = 0, t1 = 1;
  while (r1 > kLargest) {
    const int64_t quotient = r0 / r1;
    const int64_t r2 = r0 - quotient * r1, t2 = t0 - quotient * t1;
    r0 = r1, r1 = r2, t0 = t1, t1 = t2;
    if (t1 > kLargest || t1 < -kLargest) return std::nullopt;
  }
  return t1 < 0 ? std::pair(-r1, -t1) : std::pair(r1, t1);
}

std::optional<int64_t> SymbolicElements::AsInteger(Value value) const {
  const auto rational = AsRational(value);
  if (!rational || rational->second != 1) return std::nullopt;
  return rational->first;
}

bool SymbolicElements::Equal(Value a, Value b) {
  if (a == b) return true;
  Value difference = Sum({a, Scaled(b, kPrime - 1)});
  // Times all denominators.
  constexpr int kMostDenominators = 4;
  for (int round = 0; round < kMostDenominators && !values_[difference].empty(); ++round) {
    std::optional<Value> denominator;
    int32_t exponent = 0;
    for (const auto& [monomial, coefficient] : values_[difference]) {
      for (const auto& [atom, power] : monomials_[monomial]) {
        if (atoms_[atom].kind != Kind::kInverted) continue;
        if (!denominator) denominator = atoms_[atom].operands[0];
        if (*denominator == atoms_[atom].operands[0]) exponent = std::min(exponent, power);
      }
    }
    if (!denominator) break;
    const int32_t atom = AtomId(Kind::kInverted, 0, false, {*denominator});
    // The sum to a positive power, kept in one factor until it meets its inverse.
    std::vector<Value> terms;
    const Polynomial p = values_[difference];
    for (const auto& [monomial, coefficient] : p) {
      const Value raised = MultiplyMonomials(monomial, MonomialId({{atom, -exponent}}));
      terms.push_back(Scaled(raised, coefficient));
    }
    difference = Sum(terms);
  }
  return values_[difference].empty();
}

}  // namespace isomer
