#include "verifier/elements/divisors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"
#include "verifier/elements/polynomial_text.h"

namespace isomer {
namespace {

// A divisor, and the texts of it and of its negation.
struct Divisor {
  Polynomial value;
  std::string text, negated;
};

absl::StatusOr<Divisor> DivisorOf(const Polynomial& value, const Ranges& region) {
  const IndexNames names = NamesOf(region);
  Divisor divisor{value, "", ""};
  ISOMER_ASSIGN_OR_RETURN(divisor.text, PolynomialText(value, region, names));
  ISOMER_ASSIGN_OR_RETURN(divisor.negated, PolynomialText(Scaled(value, -1), region, names));
  return divisor;
}

// Factors that are 1/b for some b that is of none of the monomial's bound indices.
bool IsFraction(const Factor& factor, const Monomial& monomial) {
  return factor.kind == Factor::Kind::kReciprocal &&
         std::none_of(monomial.bounds.begin(), monomial.bounds.end(), [&](const Bound& bound) {
           return Mentions(factor.arguments[0], bound.index);
         });
}

void DropWhatIsZero(const Ranges& region, Polynomial* polynomial) {
  std::erase_if(polynomial->monomials, [&](Monomial& monomial) {
    Ranges ranges = region;
    return !DecideGuards(&monomial, &ranges) || monomial.coefficient.constant.IsZero();
  });
}

absl::StatusOr<std::optional<Divisor>> FirstDivisor(const Polynomial& polynomial,
                                                    const Ranges& region) {
  for (const Monomial& monomial : polynomial.monomials) {
    if (!monomial.guards.empty()) continue;
    for (const Factor& factor : monomial.factors) {
      if (!IsFraction(factor, monomial)) continue;
      ISOMER_ASSIGN_OR_RETURN(Divisor divisor, DivisorOf(factor.arguments[0], region));
      if (divisor.text != divisor.negated) return std::optional<Divisor>(std::move(divisor));
    }
  }
  return std::optional<Divisor>();
}

// The monomial without the divisor, and how often it had it.
absl::StatusOr<std::pair<Monomial, int>> WithoutDivisor(const Monomial& monomial,
                                                        const Divisor& divisor,
                                                        const Ranges& region) {
  std::pair<Monomial, int> result{monomial, 0};
  auto& [rest, power] = result;
  rest.factors.clear();
  for (const Factor& factor : monomial.factors) {
    if (IsFraction(factor, monomial)) {
      ISOMER_ASSIGN_OR_RETURN(const Divisor other, DivisorOf(factor.arguments[0], region));
      if (other.text == divisor.text || other.text == divisor.negated) {
        rest.coefficient.constant =
            rest.coefficient.constant * (other.text == divisor.text ? 1 : -1);
        ++power;
        continue;
      }
    }
    rest.factors.push_back(factor);
  }
  return result;
}

}  // namespace

absl::StatusOr<std::optional<Polynomial>> TakeAwayDivisor(const Ranges& region, int* next_bound,
                                                          Polynomial* a, Polynomial* b) {
  std::optional<Divisor> divisor;
  for (Polynomial* polynomial : {a, b}) {
    DropWhatIsZero(region, polynomial);
    if (divisor) continue;
    ISOMER_ASSIGN_OR_RETURN(divisor, FirstDivisor(*polynomial, region));
  }
  if (!divisor) return std::optional<Polynomial>();
  std::vector<std::pair<Monomial, int>> parts[2];
  int most = 0;
  for (const int side : {0, 1}) {
    for (const Monomial& monomial : (side == 0 ? a : b)->monomials) {
      ISOMER_ASSIGN_OR_RETURN(auto part, WithoutDivisor(monomial, *divisor, region));
      most = std::max(most, part.second);
      parts[side].push_back(std::move(part));
    }
  }
  for (const int side : {0, 1}) {
    Polynomial product;
    for (auto& [monomial, power] : parts[side]) {
      Polynomial part{{std::move(monomial)}};
      for (; power < most; ++power) {
        ISOMER_ASSIGN_OR_RETURN(part, Product(part, divisor->value, next_bound));
      }
      product.monomials.insert(product.monomials.end(), part.monomials.begin(),
                               part.monomials.end());
    }
    *(side == 0 ? a : b) = std::move(product);
  }
  return std::optional<Polynomial>(std::move(divisor->value));
}

}  // namespace isomer
