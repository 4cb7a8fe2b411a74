#include "verifier/elements/normal_form.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/elements/divisors.h"
#include "verifier/elements/polynomial_text.h"

namespace isomer {

namespace {
constexpr size_t kMaxRegions = 256, kMaxConditions = 6;
constexpr int kMaxDivisors = 8;
constexpr double kMaxTexts = 20000;
constexpr int kFirstOfProducts = 500000;  // above the indices that a reader of elements gives
// Of three atoms there are 48 orders, of four 384; and more with constants among them.
constexpr size_t kMaxOrdered = 4, kMaxOrderedConstants = 2;

// How many texts are made for that of a polynomial: a sum has the smallest of all orders of its
// indices, for each of which all inside is looked at again.
double TextsOf(const Polynomial& polynomial) {
  const auto orders = [](const auto& bounds) { return std::tgamma(1.0 + bounds.size()); };
  double texts = 0;
  for (const Monomial& monomial : polynomial.monomials) {
    double inside = 1;
    for (const Factor& factor : monomial.factors) {
      for (const Polynomial& a : factor.arguments) inside += orders(factor.bounds) * TextsOf(a);
    }
    texts += orders(monomial.bounds) * inside;
  }
  return texts;
}

// What two polynomials are compared in: a region of their indices, and cases there.
struct Comparison {
  const Ranges& region;
  const Polynomial &left, &right;
  std::map<std::string, bool>* zeros;  // divisors by text, each asked for once: whether it is zero

  // Whether they have one normal form in each case that `given` leaves.
  absl::StatusOr<bool> EqualIn(const Case& given) const {
    Case now = given;
    ISOMER_ASSIGN_OR_RETURN(const std::string left_form, NormalForm(left, region, &now));
    ISOMER_ASSIGN_OR_RETURN(const std::string right_form, NormalForm(right, region, &now));
    if (left_form == right_form) return true;
    std::vector<Case> cases;
    if (now.open) {
      if (given.decided.size() == kMaxConditions) return false;
      for (const bool holds : {true, false}) {
        cases.push_back(given);
        cases.back().decided[*now.open] = holds;
      }
    } else if (now.open_atom && given.order->atoms.size() < kMaxOrdered) {
      for (Order& order : OrdersWith(*given.order, *now.open_atom)) {
        cases.push_back(given);
        cases.back().order = std::move(order);
      }
    }
    for (const Case& one : cases) {
      ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(one));
      if (!equal) return false;
    }
    return !cases.empty();
  }

  // Multiplied by all that they divide by, if that is not zero.
  absl::StatusOr<bool> EqualWithoutDivisors(Exp exp) const {
    Polynomial a = left, b = right;
    int next_bound = kFirstOfProducts;
    for (int divisors = 0; divisors < kMaxDivisors; ++divisors) {
      ISOMER_ASSIGN_OR_RETURN(const std::optional<Polynomial> divisor,
                              TakeAwayDivisor(region, &next_bound, &a, &b));
      if (!divisor) {
        if (divisors == 0) return false;
        return Comparison{region, a, b, zeros}.Equal(exp);
      }
      ISOMER_ASSIGN_OR_RETURN(const bool is_zero, IsZero(*divisor, exp));
      if (is_zero) return false;
    }
    return false;
  }

  absl::StatusOr<bool> IsZero(const Polynomial& divisor, Exp exp) const {
    ISOMER_ASSIGN_OR_RETURN(std::string text, PolynomialText(divisor, region, NamesOf(region)));
    if (const auto known = zeros->find(text); known != zeros->end()) return known->second;
    ISOMER_ASSIGN_OR_RETURN(const bool is_zero,
                            (Comparison{region, divisor, {}, zeros}.IsEqual(exp)));
    return zeros->emplace(std::move(text), is_zero).first->second;
  }

  absl::StatusOr<bool> IsEqual(Exp exp) const {
    ISOMER_ASSIGN_OR_RETURN(const bool equal, Equal(exp));
    return equal ? equal : EqualWithoutDivisors(exp);
  }

  // As maxima, whose laws are those of a lattice, or where these are one of their arguments.
  absl::StatusOr<bool> Equal(Exp exp) const {
    Case whole;
    whole.exp_of_sums = exp == Exp::kOfSums;
    ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(whole));
    if (equal) return true;
    Order order;
    CollectConstants(left, &order.constants);
    CollectConstants(right, &order.constants);
    if (order.constants.size() > kMaxOrderedConstants) return false;
    whole.order = std::move(order);
    return EqualIn(whole);
  }
};

// The terms' elements at one index, whose variables have the sizes `free`.
struct Elements {
  std::vector<Bound> free;
  Polynomial left, right;
};

// Cuts what must be cut for that.
absl::StatusOr<Elements> ReadBoth(const TermPool& pool, TermId a, TermId b,
                                  const std::map<int, double>& numbers) {
  IndexCuts cuts;
  while (true) {
    ElementReader reader(pool, cuts);
    for (const auto& [variable, number] : numbers) reader.KnowValue(variable, number);
    Elements elements;
    std::vector<Affine> element;
    int next = 0;
    for (size_t d = 0; d < pool[a].shape.size(); ++d) {
      element.push_back(
          reader.IndexOf(static_cast<int>(d), pool[a].shape[d], &next, &elements.free));
    }
    auto left = reader.Read(a, element);
    auto right = left.ok() ? reader.Read(b, element) : left.status();
    if (right.ok()) {
      elements.left = *std::move(left);
      elements.right = *std::move(right);
      return elements;
    }
    // No variable is of a piece that is cut, so that this ends.
    if (!reader.wanted_cut().has_value()) return right.status();
    cuts.insert(*reader.wanted_cut());
  }
}

}  // namespace

absl::StatusOr<std::string> NormalForm(const Polynomial& polynomial, const Ranges& ranges,
                                       Case* in_case) {
  IndexNames names;
  for (const auto& [v, range] : ranges) names[v] = absl::StrCat("i", v);
  ISOMER_ASSIGN_OR_RETURN(const Polynomial simple, Simplified(polynomial, ranges, in_case));
  return PolynomialText(simple, ranges, names);
}

absl::StatusOr<bool> ProvablyEqual(const TermPool& pool, TermId a, TermId b, Divisors divisors,
                                   const std::map<int, double>& numbers, Exp exp) {
  if (pool[a].shape != pool[b].shape) return false;
  ISOMER_ASSIGN_OR_RETURN(const Elements elements, ReadBoth(pool, a, b, numbers));
  const auto& [free, left, right] = elements;
  if (TextsOf(left) + TextsOf(right) > kMaxTexts) {
    return absl::ResourceExhaustedError("too many nested sums");
  }
  const int rank = static_cast<int>(free.size());
  std::vector<std::set<Extent>> cuts(rank);
  for (int i = 0; i < rank; ++i) {
    CollectCuts(left, i, {}, &cuts[i]);
    CollectCuts(right, i, {}, &cuts[i]);
  }
  std::vector<Ranges> regions = {{}};
  for (int i = 0; i < rank; ++i) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<IndexRange> pieces, Pieces(cuts[i], free[i].size));
    std::vector<Ranges> refined;
    for (const Ranges& region : regions) {
      for (const IndexRange& piece : pieces) {
        refined.push_back(region);
        refined.back()[i] = piece;
      }
    }
    regions = std::move(refined);
    if (regions.size() > kMaxRegions) return absl::ResourceExhaustedError("too many regions");
  }
  for (const Ranges& region : regions) {
    std::map<std::string, bool> zeros;
    const Comparison here{region, left, right, &zeros};
    ISOMER_ASSIGN_OR_RETURN(const bool equal,
                            divisors == Divisors::kNotZero ? here.IsEqual(exp) : here.Equal(exp));
    if (!equal) return false;
  }
  return true;
}

}  // namespace isomer
