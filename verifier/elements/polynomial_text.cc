#include "verifier/elements/polynomial_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr size_t kMaxBounds = 5;

// A text, and the sign that it was given to be smaller.
struct SignedText {
  std::string text;
  int sign = 1;
  friend bool operator<(const SignedText& a, const SignedText& b) { return a.text < b.text; }
};

std::string AffineText(const Affine& affine, const IndexNames& names) {
  std::vector<std::string> parts;
  for (const auto& [v, coefficient] : affine.terms) {
    parts.push_back(
        absl::StrCat(names.at(v), coefficient == 1 ? "" : absl::StrCat("*", coefficient)));
  }
  std::sort(parts.begin(), parts.end());
  if (affine.offset != Extent(0)) parts.push_back(affine.offset.ToString());
  return absl::StrJoin(parts, "+");
}

// The smallest of the texts that `text_of` gives for the orders of `bounds`, which it is to name.
template <typename TextOf>
absl::StatusOr<SignedText> SmallestText(const std::vector<Bound>& bounds, const TextOf& text_of) {
  if (bounds.size() > kMaxBounds) return absl::UnimplementedError("too many nested sums");
  std::vector<int> order(bounds.size());
  std::iota(order.begin(), order.end(), 0);
  std::optional<SignedText> best;
  do {
    ISOMER_ASSIGN_OR_RETURN(SignedText text, text_of(order));
    if (!best || text < *best) best = std::move(text);
  } while (std::next_permutation(order.begin(), order.end()));
  return *std::move(best);
}

absl::StatusOr<SignedText> FactorText(const Factor& factor, const Ranges& ranges,
                                      const IndexNames& names);

// Without the coefficient.
absl::StatusOr<SignedText> MonomialText(const Monomial& monomial, const Ranges& ranges,
                                        const IndexNames& names) {
  return SmallestText(
      monomial.bounds, [&](const std::vector<int>& order) -> absl::StatusOr<SignedText> {
        IndexNames inner = names;
        SignedText result;
        for (size_t i = 0; i < order.size(); ++i) {
          const Bound& bound = monomial.bounds[order[i]];
          inner[bound.index] = absl::StrCat("b", names.size(), "_", i);
          absl::StrAppend(&result.text, "sum<", bound.size.ToString(), "> ");
        }
        std::vector<std::string> parts;
        for (const Guard& guard : monomial.guards) {
          parts.push_back(absl::StrCat("[0<=", AffineText(guard.value, inner), "<",
                                       guard.size.ToString(), "]"));
        }
        std::sort(parts.begin(), parts.end());
        parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
        const size_t num_guards = parts.size();
        for (const Factor& factor : monomial.factors) {
          ISOMER_ASSIGN_OR_RETURN(SignedText part, FactorText(factor, ranges, inner));
          result.sign *= part.sign;
          parts.push_back(std::move(part.text));
        }
        std::sort(parts.begin() + static_cast<int64_t>(num_guards), parts.end());
        absl::StrAppend(&result.text, absl::StrJoin(parts, "*"));
        return result;
      });
}

absl::StatusOr<SignedText> MaximumOverBounds(const Factor& factor, const Ranges& ranges,
                                             const IndexNames& names) {
  return SmallestText(
      factor.bounds, [&](const std::vector<int>& order) -> absl::StatusOr<SignedText> {
        IndexNames inner_names = names;
        Ranges inner = ranges;
        SignedText result{"max", 1};
        for (size_t i = 0; i < order.size(); ++i) {
          const Bound& bound = factor.bounds[order[i]];
          inner[bound.index] = {0, bound.size};
          inner_names[bound.index] = absl::StrCat("m", names.size(), "_", i);
          absl::StrAppend(&result.text, "<", bound.size.ToString(), ">");
        }
        ISOMER_ASSIGN_OR_RETURN(const std::string argument,
                                PolynomialText(factor.arguments[0], inner, inner_names));
        absl::StrAppend(&result.text, argument);
        return result;
      });
}

// A sum: the coefficients of each monomial, by their variables.
using Coefficients = std::map<std::string, std::map<std::vector<std::string>, ExactNumber>>;

absl::StatusOr<Coefficients> CoefficientsOf(const Polynomial& polynomial, const Ranges& ranges,
                                            const IndexNames& names) {
  Coefficients sum;
  for (const Monomial& given : polynomial.monomials) {
    Monomial monomial = given;
    Ranges inner = ranges;
    if (!DecideGuards(&monomial, &inner)) continue;
    ISOMER_ASSIGN_OR_RETURN(const SignedText text, MonomialText(monomial, inner, names));
    ExactNumber& coefficient = sum[text.text][monomial.coefficient.variables];
    coefficient = coefficient + monomial.coefficient.constant * text.sign;
  }
  return sum;
}

std::string TextOf(const Coefficients& sum, int sign) {
  std::string text;
  for (const auto& [monomial, coefficients] : sum) {
    for (const auto& [variables, constant] : coefficients) {
      if (constant.IsZero()) continue;
      absl::StrAppend(&text, text.empty() ? "" : " + ", (constant * sign).ToString(), "*",
                      absl::StrJoin(variables, "*"), " ", monomial);
    }
  }
  return absl::StrCat("{", text, "}");
}

// Of f(argument) where f(-argument) = -f(argument): the argument of the smaller text.
absl::StatusOr<SignedText> OddText(absl::string_view name, const Polynomial& argument,
                                   const Ranges& ranges, const IndexNames& names) {
  ISOMER_ASSIGN_OR_RETURN(const Coefficients sum, CoefficientsOf(argument, ranges, names));
  const std::string plain = TextOf(sum, 1), negated = TextOf(sum, -1);
  return negated < plain ? SignedText{absl::StrCat(name, negated), -1}
                         : SignedText{absl::StrCat(name, plain), 1};
}

absl::StatusOr<SignedText> FactorText(const Factor& factor, const Ranges& ranges,
                                      const IndexNames& names) {
  std::vector<std::string> indices, arguments;
  for (const Affine& index : factor.indices) indices.push_back(AffineText(index, names));
  const std::string at = absl::StrCat("[", absl::StrJoin(indices, ","), "]");
  switch (factor.kind) {
    case Factor::Kind::kElement:
      return SignedText{absl::StrCat("x", factor.variable, at), 1};
    case Factor::Kind::kReciprocal:
      return OddText("1/", factor.arguments[0], ranges, names);
    case Factor::Kind::kMaximum:
      return MaximumOverBounds(factor, ranges, names);
    case Factor::Kind::kSelected: {
      ISOMER_ASSIGN_OR_RETURN(const std::string selected,
                              PolynomialText(factor.arguments[0], ranges, names));
      return SignedText{absl::StrCat("[", at, "==", selected, "]"), 1};
    }
    case Factor::Kind::kCast: {
      ISOMER_ASSIGN_OR_RETURN(const std::string argument,
                              PolynomialText(factor.arguments[0], ranges, names));
      return SignedText{absl::StrCat("cast", factor.variable, "(", argument, ")"), 1};
    }
    case Factor::Kind::kFunction:
      break;
  }
  if (factor.function == ScalarOp::kMax) {
    ISOMER_ASSIGN_OR_RETURN(const LatticeTerm term, LatticeTermOf(Single(factor), ranges, names));
    ISOMER_ASSIGN_OR_RETURN(const LatticeForm form, LatticeFormOf(term));
    return SignedText{form.integer ? absl::StrCat("=", *form.integer) : form.text, form.sign};
  }
  for (const Polynomial& argument : factor.arguments) {
    ISOMER_ASSIGN_OR_RETURN(std::string text, PolynomialText(argument, ranges, names));
    arguments.push_back(std::move(text));
  }
  if (factor.function == ScalarOp::kEqual) std::sort(arguments.begin(), arguments.end());
  return SignedText{
      absl::StrCat("f", static_cast<int>(factor.function), "(", absl::StrJoin(arguments, ","), ")"),
      1};
}

}  // namespace

IndexNames NamesOf(const Ranges& ranges) {
  IndexNames names;
  for (const auto& [v, range] : ranges) names[v] = absl::StrCat("t", v);
  return names;
}

absl::StatusOr<std::string> PolynomialText(const Polynomial& polynomial, const Ranges& ranges,
                                           const IndexNames& names) {
  ISOMER_ASSIGN_OR_RETURN(const Coefficients sum, CoefficientsOf(polynomial, ranges, names));
  return TextOf(sum, 1);
}

const Factor* OnlyMaximum(const Polynomial& polynomial, int* sign) {
  if (polynomial.monomials.size() != 1) return nullptr;
  const Monomial& only = polynomial.monomials[0];
  const ExactNumber& coefficient = only.coefficient.constant;
  if (only.factors.size() != 1 || !only.bounds.empty() || !only.guards.empty() ||
      !only.coefficient.variables.empty() || (coefficient != 1 && coefficient != -1) ||
      only.factors[0].kind != Factor::Kind::kFunction ||
      only.factors[0].function != ScalarOp::kMax) {
    return nullptr;
  }
  *sign = coefficient.Sign();
  return &only.factors[0];
}

std::optional<int64_t> OnlySmallInteger(const Polynomial& polynomial) {
  if (polynomial.monomials.empty()) return 0;
  const Monomial& only = polynomial.monomials[0];
  const std::optional<double> value = only.coefficient.constant.AsDouble();
  if (polynomial.monomials.size() > 1 || !only.factors.empty() || !only.bounds.empty() ||
      !only.guards.empty() || !only.coefficient.variables.empty() || !value.has_value() ||
      std::fabs(*value) > 1e9 || std::trunc(*value) != *value) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

absl::StatusOr<LatticeTerm> LatticeTermOf(const Polynomial& polynomial, const Ranges& ranges,
                                          const IndexNames& names) {
  LatticeTerm term;
  const Factor* maximum = OnlyMaximum(polynomial, &term.sign);
  if (maximum != nullptr) {
    term.kind = LatticeTerm::Kind::kMaximum;
    for (const Polynomial& argument : maximum->arguments) {
      ISOMER_ASSIGN_OR_RETURN(LatticeTerm one, LatticeTermOf(argument, ranges, names));
      term.arguments.push_back(std::move(one));
    }
  } else if (const std::optional<int64_t> integer = OnlySmallInteger(polynomial)) {
    term.kind = LatticeTerm::Kind::kInteger;
    term.integer = *integer;
  } else {
    ISOMER_ASSIGN_OR_RETURN(SignedText text, OddText("", polynomial, ranges, names));
    term.atom = std::move(text.text);
    term.sign = text.sign;
  }
  return term;
}

}  // namespace isomer
