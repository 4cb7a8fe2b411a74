#include "verifier/normal_form.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {

bool IsNonNegative(const Extent& extent) {
  int64_t least = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) {
    if (coefficient < 0) return false;
    least += coefficient;
  }
  return least >= 0;
}

namespace {

using Ranges = std::map<int, IndexRange>;
using Names = std::map<int, std::string>;

constexpr size_t kMaxBounds = 5;
constexpr size_t kMaxRegions = 256;

// value in [lower, upper].
struct Limits {
  Extent lower, upper;
};

Limits LimitsOf(const Affine& value, const Ranges& ranges) {
  Limits limits{value.offset, value.offset};
  for (const auto& [v, coefficient] : value.terms) {
    const IndexRange& range = ranges.at(v);
    const Extent least = range.lower, most = range.upper - 1;
    limits.lower += (coefficient > 0 ? least : most) * coefficient;
    limits.upper += (coefficient > 0 ? most : least) * coefficient;
  }
  return limits;
}

class Normalizer {
 public:
  absl::StatusOr<std::string> PolynomialText(const Polynomial& polynomial, const Ranges& ranges,
                                             const Names& names) {
    // Monomial without coefficient -> its coefficients by their variables.
    std::map<std::string, std::map<std::vector<std::string>, double>> sum;
    for (const Monomial& given : polynomial.monomials) {
      Monomial monomial = given;
      Ranges inner = ranges;
      if (!Simplify(&monomial, &inner)) continue;
      ISOMER_ASSIGN_OR_RETURN(const std::string text, MonomialText(monomial, inner, names));
      sum[text][monomial.coefficient.variables] += monomial.coefficient.constant;
    }
    std::string text;
    for (const auto& [monomial, coefficients] : sum) {
      for (const auto& [variables, constant] : coefficients) {
        if (constant == 0) continue;
        absl::StrAppend(&text, text.empty() ? "" : " + ", AttributeText(constant), "*",
                        absl::StrJoin(variables, "*"), " ", monomial);
      }
    }
    return absl::StrCat("{", text, "}");
  }

 private:
  // Decides guards and narrows ranges until nothing changes. False: the monomial is zero.
  static bool Simplify(Monomial* monomial, Ranges* ranges) {
    for (const Bound& bound : monomial->bounds) (*ranges)[bound.index] = {0, bound.size};
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t g = 0; g < monomial->guards.size(); ++g) {
        const Guard guard = monomial->guards[g];
        const Limits limits = LimitsOf(guard.value, *ranges);
        if (IsNonNegative(limits.lower - guard.size) || IsNonNegative(limits.upper * -1 - 1)) {
          return false;
        }
        const bool holds =
            IsNonNegative(limits.lower) && IsNonNegative(guard.size - limits.upper - 1);
        if (!holds && !Narrow(guard, monomial, ranges)) continue;
        monomial->guards.erase(monomial->guards.begin() + g--);
        changed = true;
      }
    }
    // A range of one element.
    for (const auto& [v, range] : *ranges) {
      if (range.upper - range.lower == Extent(1)) {
        SubstituteIn(monomial, v, Affine{{}, range.lower});
        std::erase_if(monomial->bounds, [v = v](const Bound& bound) { return bound.index == v; });
      }
    }
    return true;
  }

  // Takes up a guard of one bound index into its range, which then starts at 0 again.
  static bool Narrow(const Guard& guard, Monomial* monomial, Ranges* ranges) {
    if (guard.value.terms.size() != 1 || guard.value.terms.begin()->second != 1) return false;
    const int v = guard.value.terms.begin()->first;
    auto bound = std::find_if(monomial->bounds.begin(), monomial->bounds.end(),
                              [v](const Bound& b) { return b.index == v; });
    if (bound == monomial->bounds.end()) return false;
    Extent lower = guard.value.offset * -1, upper = lower + guard.size;
    if (IsNonNegative(lower * -1)) lower = 0;
    if (!IsNonNegative(lower)) return false;
    if (IsNonNegative(upper - bound->size)) upper = bound->size;
    if (!IsNonNegative(bound->size - upper)) return false;
    bound->size = upper - lower;
    (*ranges)[v] = {0, bound->size};
    Affine shifted = Affine::Variable(v);
    shifted.offset = lower;
    SubstituteIn(monomial, v, shifted);
    return true;
  }

  // The smallest text over all orders of the bound indices.
  absl::StatusOr<std::string> MonomialText(const Monomial& monomial, const Ranges& ranges,
                                           const Names& names) {
    if (monomial.bounds.size() > kMaxBounds) {
      return absl::UnimplementedError("too many nested sums");
    }
    std::vector<int> order(monomial.bounds.size());
    std::iota(order.begin(), order.end(), 0);
    std::string best;
    do {
      Names inner = names;
      std::string text;
      for (size_t i = 0; i < order.size(); ++i) {
        const Bound& bound = monomial.bounds[order[i]];
        inner[bound.index] = absl::StrCat("b", names.size(), "_", i);
        absl::StrAppend(&text, "sum<", bound.size.ToString(), "> ");
      }
      std::vector<std::string> parts;
      for (const Guard& guard : monomial.guards) {
        parts.push_back(
            absl::StrCat("[0<=", AffineText(guard.value, inner), "<", guard.size.ToString(), "]"));
      }
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
      const size_t num_guards = parts.size();
      for (const Factor& factor : monomial.factors) {
        ISOMER_ASSIGN_OR_RETURN(std::string part, FactorText(factor, ranges, inner));
        parts.push_back(std::move(part));
      }
      std::sort(parts.begin() + num_guards, parts.end());
      absl::StrAppend(&text, absl::StrJoin(parts, "*"));
      if (best.empty() || text < best) best = text;
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
  }

  static std::string AffineText(const Affine& affine, const Names& names) {
    std::vector<std::string> parts;
    for (const auto& [v, coefficient] : affine.terms) {
      parts.push_back(
          absl::StrCat(names.at(v), coefficient == 1 ? "" : absl::StrCat("*", coefficient)));
    }
    std::sort(parts.begin(), parts.end());
    if (affine.offset != Extent(0)) parts.push_back(affine.offset.ToString());
    return absl::StrJoin(parts, "+");
  }

  absl::StatusOr<std::string> FactorText(const Factor& factor, const Ranges& ranges,
                                         const Names& names) {
    std::vector<std::string> indices, arguments;
    for (const Affine& index : factor.indices) indices.push_back(AffineText(index, names));
    const std::string at = absl::StrCat("[", absl::StrJoin(indices, ","), "]");
    Ranges inner_ranges = ranges;
    Names inner_names = names;
    for (size_t i = 0; i < factor.bounds.size(); ++i) {
      inner_ranges[factor.bounds[i].index] = {0, factor.bounds[i].size};
      inner_names[factor.bounds[i].index] = absl::StrCat("m", names.size(), "_", i);
    }
    std::vector<const Polynomial*> polynomials;
    for (const Polynomial& argument : factor.arguments) polynomials.push_back(&argument);
    if (factor.kind == Factor::Kind::kFunction && factor.function == ScalarOp::kMax) {
      polynomials = MaximumArguments(factor);
    }
    for (const Polynomial* argument : polynomials) {
      ISOMER_ASSIGN_OR_RETURN(std::string text,
                              PolynomialText(*argument, inner_ranges, inner_names));
      arguments.push_back(std::move(text));
    }
    switch (factor.kind) {
      case Factor::Kind::kElement:
        return absl::StrCat("x", factor.variable, at);
      case Factor::Kind::kReciprocal:
        return absl::StrCat("1/", arguments[0]);
      case Factor::Kind::kSelected:
        return absl::StrCat("[", at, "==", arguments[0], "]");
      case Factor::Kind::kMaximum: {
        std::string sizes;
        for (const Bound& bound : factor.bounds) {
          absl::StrAppend(&sizes, "<", bound.size.ToString(), ">");
        }
        return absl::StrCat("max", sizes, arguments[0]);
      }
      case Factor::Kind::kFunction:
        break;
    }
    if (factor.function == ScalarOp::kMax) {  // Commutative, associative, idempotent.
      std::sort(arguments.begin(), arguments.end());
      arguments.erase(std::unique(arguments.begin(), arguments.end()), arguments.end());
      if (arguments.size() == 1) return absl::StrCat("same", arguments[0]);
    }
    return absl::StrCat("f", static_cast<int>(factor.function), "(", absl::StrJoin(arguments, ","),
                        ")");
  }

  // The arguments of nested maxima, flattened.
  static std::vector<const Polynomial*> MaximumArguments(const Factor& factor) {
    std::vector<const Polynomial*> flat;
    for (const Polynomial& argument : factor.arguments) {
      const Monomial* only = argument.monomials.size() == 1 ? &argument.monomials[0] : nullptr;
      if (only != nullptr && only->factors.size() == 1 && only->bounds.empty() &&
          only->guards.empty() && only->coefficient == NumberExpr() &&
          only->factors[0].kind == Factor::Kind::kFunction &&
          only->factors[0].function == ScalarOp::kMax) {
        for (const Polynomial* inner : MaximumArguments(only->factors[0])) flat.push_back(inner);
      } else {
        flat.push_back(&argument);
      }
    }
    return flat;
  }
};

// Where guards of a free index alone change, per free index.
void CollectCuts(const Polynomial& polynomial, int num_free, std::vector<std::set<Extent>>* cuts) {
  for (const Monomial& monomial : polynomial.monomials) {
    for (const Guard& guard : monomial.guards) {
      if (guard.value.terms.size() != 1 || guard.value.terms.begin()->second != 1) continue;
      const int v = guard.value.terms.begin()->first;
      if (v >= num_free) continue;
      (*cuts)[v].insert(guard.value.offset * -1);
      (*cuts)[v].insert(guard.size - guard.value.offset);
    }
    for (const Factor& factor : monomial.factors) {
      for (const Polynomial& argument : factor.arguments) CollectCuts(argument, num_free, cuts);
    }
  }
}

// The pieces of [0, size) between the cuts, or an error if their order depends on the sizes.
absl::StatusOr<std::vector<IndexRange>> Pieces(const std::set<Extent>& cuts, const Extent& size) {
  std::vector<Extent> inside;
  for (const Extent& cut : cuts) {
    if (IsNonNegative(cut * -1) || IsNonNegative(cut - size)) continue;
    if (!IsNonNegative(cut) || !IsNonNegative(size - cut)) {
      return absl::UnimplementedError("the order of parts depends on their sizes");
    }
    inside.push_back(cut);
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!IsNonNegative(inside[i] - inside[j]) && !IsNonNegative(inside[j] - inside[i])) {
        return absl::UnimplementedError("the order of parts depends on their sizes");
      }
    }
  }
  std::sort(inside.begin(), inside.end(),
            [](const Extent& a, const Extent& b) { return a != b && IsNonNegative(b - a); });
  std::vector<IndexRange> pieces;
  Extent lower = 0;
  for (const Extent& cut : inside) {
    pieces.push_back({lower, cut});
    lower = cut;
  }
  pieces.push_back({lower, size});
  return pieces;
}

}  // namespace

absl::StatusOr<std::string> NormalForm(const Polynomial& polynomial, const Ranges& ranges) {
  Names names;
  for (const auto& [v, range] : ranges) names[v] = absl::StrCat("i", v);
  return Normalizer().PolynomialText(polynomial, ranges, names);
}

absl::StatusOr<bool> ProvablyEqual(const TermPool& pool, TermId a, TermId b) {
  const Shape& shape = pool[a].shape;
  if (shape != pool[b].shape) return false;
  const int rank = static_cast<int>(shape.size());
  std::vector<Affine> element;
  for (int i = 0; i < rank; ++i) element.push_back(Affine::Variable(i));
  ElementReader reader(pool);
  ISOMER_ASSIGN_OR_RETURN(const Polynomial left, reader.Read(a, element));
  ISOMER_ASSIGN_OR_RETURN(const Polynomial right, reader.Read(b, element));
  std::vector<std::set<Extent>> cuts(rank);
  CollectCuts(left, rank, &cuts);
  CollectCuts(right, rank, &cuts);
  std::vector<Ranges> regions = {{}};
  for (int i = 0; i < rank; ++i) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<IndexRange> pieces, Pieces(cuts[i], shape[i]));
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
    ISOMER_ASSIGN_OR_RETURN(const std::string left_form, NormalForm(left, region));
    ISOMER_ASSIGN_OR_RETURN(const std::string right_form, NormalForm(right, region));
    if (left_form != right_form) return false;
  }
  return true;
}

}  // namespace isomer
