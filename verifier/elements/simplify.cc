#include "verifier/elements/simplify.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/elements/covered_maxima.h"
#include "verifier/elements/polynomial_text.h"

namespace isomer {
namespace {

constexpr size_t kMaxSimplified = 256;
constexpr int kFirstFresh = 1000000;  // above the indices that a reader of elements gives

Factor FactorOf(Factor::Kind kind, Polynomial argument) {
  Factor factor;
  factor.kind = kind;
  factor.arguments.push_back(std::move(argument));
  return factor;
}

bool IsExponential(const Factor& factor) {
  return factor.kind == Factor::Kind::kFunction && factor.function == ScalarOp::kExp;
}

class Simplifier {
 public:
  Simplifier(const Ranges& free, Case* in_case) : free_(free), case_(in_case) {}

  absl::StatusOr<Polynomial> Of(const Polynomial& polynomial, const Ranges& ranges) {
    Polynomial result;
    for (const Monomial& given : polynomial.monomials) {
      Monomial monomial = given;
      Ranges inner = ranges;
      if (!DecideGuards(&monomial, &inner)) continue;
      ISOMER_RETURN_IF_ERROR(MergeSelections(inner, &monomial));
      ISOMER_ASSIGN_OR_RETURN(std::optional<Polynomial> parts, AsMultiples(monomial, ranges));
      if (!parts) {
        ISOMER_ASSIGN_OR_RETURN(parts, SumOverPieces(monomial, ranges));
      }
      if (parts) {
        result.monomials.insert(result.monomials.end(), parts->monomials.begin(),
                                parts->monomials.end());
        continue;
      }
      Polynomial product;
      product.monomials.push_back(monomial);
      product.monomials[0].factors.clear();
      for (const Factor& factor : monomial.factors) {
        ISOMER_ASSIGN_OR_RETURN(const Polynomial simple, Of(factor, inner));
        ISOMER_ASSIGN_OR_RETURN(product, Times(product, simple));
      }
      for (Monomial& m : product.monomials) {
        if (case_->exp_of_sums) ISOMER_RETURN_IF_ERROR(MergeExponentials(inner, &m));
        result.monomials.push_back(std::move(m));
      }
    }
    return result;
  }

 private:
  // Two look-ups at one index are at one place: [v == i] * [w == i] is [v == i] where w is v.
  static absl::Status MergeSelections(const Ranges& ranges, Monomial* monomial) {
    std::map<std::string, Affine> places;  // by what is looked up
    for (size_t f = 0; f < monomial->factors.size(); ++f) {
      const Factor& factor = monomial->factors[f];
      if (factor.kind != Factor::Kind::kSelected) continue;
      ISOMER_ASSIGN_OR_RETURN(const std::string text,
                              PolynomialText(factor.arguments[0], ranges, NamesOf(ranges)));
      const auto [place, is_new] = places.emplace(text, factor.indices[0]);
      if (is_new) continue;
      const std::optional<size_t> here = BoundThatIs(factor.indices[0], *monomial);
      const std::optional<size_t> there = BoundThatIs(place->second, *monomial);
      if (place->second != factor.indices[0]) {
        if (!here || !there || monomial->bounds[*here].size != monomial->bounds[*there].size) {
          continue;
        }
        SubstituteIn(monomial, monomial->bounds[*here].index, place->second);
        monomial->bounds.erase(monomial->bounds.begin() + static_cast<int64_t>(*here));
      }
      monomial->factors.erase(monomial->factors.begin() + static_cast<int64_t>(f--));
    }
    return absl::OkStatus();
  }

  // Which bound index of the monomial the affine expression is.
  static std::optional<size_t> BoundThatIs(const Affine& affine, const Monomial& monomial) {
    for (size_t b = 0; b < monomial.bounds.size(); ++b) {
      if (affine == Affine::Variable(monomial.bounds[b].index)) return b;
    }
    return std::nullopt;
  }

  // A sum of n + 1 times the same is n times that and that.
  absl::StatusOr<std::optional<Polynomial>> AsMultiples(const Monomial& monomial,
                                                        const Ranges& ranges) {
    for (size_t b = 0; b < monomial.bounds.size(); ++b) {
      const auto& [index, size] = monomial.bounds[b];
      const bool is_symbol = size == (size.known() ? 0 : Extent::Symbol(size.terms()[0].first));
      if (is_symbol || Mentions(monomial, index)) continue;
      Polynomial sum;
      for (const auto& [symbol, coefficient] : size.terms()) {
        sum.monomials.push_back(Renamed(monomial, &next_));
        sum.monomials.back().bounds[b].size = Extent::Symbol(symbol);
        ExactNumber& constant = sum.monomials.back().coefficient.constant;
        constant = constant * coefficient;
      }
      Monomial rest = Renamed(monomial, &next_);
      rest.bounds.erase(rest.bounds.begin() + static_cast<int64_t>(b));
      rest.coefficient.constant = rest.coefficient.constant * size.constant();
      sum.monomials.push_back(std::move(rest));
      ISOMER_ASSIGN_OR_RETURN(Polynomial simple, Of(sum, ranges));
      return std::optional<Polynomial>(std::move(simple));
    }
    return std::optional<Polynomial>();
  }

  // A sum whose range guards inside of its factors cut, as the sum over the pieces.
  absl::StatusOr<std::optional<Polynomial>> SumOverPieces(const Monomial& monomial,
                                                          const Ranges& ranges) {
    for (size_t b = 0; b < monomial.bounds.size(); ++b) {
      std::set<Extent> cuts;
      CollectCuts(Polynomial{{monomial}}, monomial.bounds[b].index, free_, &cuts);
      const auto pieces = Pieces(cuts, monomial.bounds[b].size);
      if (!pieces.ok() || pieces->size() < 2) continue;
      Polynomial sum;
      for (const IndexRange& piece : *pieces) {
        Monomial part = Renamed(monomial, &next_);
        Affine shifted = Affine::Variable(part.bounds[b].index);
        shifted.offset = piece.lower;
        part.bounds[b].size = piece.upper - piece.lower;
        SubstituteIn(&part, part.bounds[b].index, shifted);
        sum.monomials.push_back(std::move(part));
      }
      ISOMER_ASSIGN_OR_RETURN(Polynomial simple, Of(sum, ranges));
      return std::optional<Polynomial>(std::move(simple));
    }
    return std::optional<Polynomial>();
  }

  // Bound indices of `a` keep their names, so that factors to come still mean them.
  absl::StatusOr<Polynomial> Times(const Polynomial& a, const Polynomial& b) {
    if (a.monomials.size() * b.monomials.size() > kMaxSimplified) {
      return absl::ResourceExhaustedError("product of too many monomials");
    }
    Polynomial product;
    for (const Monomial& left : a.monomials) {
      for (const Monomial& right : b.monomials) {
        Monomial m = left, r = Renamed(right, &next_);
        m.coefficient = m.coefficient * r.coefficient;
        m.bounds.insert(m.bounds.end(), r.bounds.begin(), r.bounds.end());
        m.guards.insert(m.guards.end(), r.guards.begin(), r.guards.end());
        m.factors.insert(m.factors.end(), r.factors.begin(), r.factors.end());
        product.monomials.push_back(std::move(m));
      }
    }
    return product;
  }

  absl::StatusOr<Polynomial> Of(const Factor& given, const Ranges& ranges) {
    if (given.kind == Factor::Kind::kMaximum) return Maximum(given, ranges);
    if (given.kind == Factor::Kind::kElement && given.variable == kCoordinates &&
        given.indices[0].terms.empty() && given.indices[0].offset.known()) {
      return Constant({given.indices[0].offset.value(), {}});
    }
    Factor factor = given;
    for (Polynomial& argument : factor.arguments) {
      ISOMER_ASSIGN_OR_RETURN(argument, Of(argument, ranges));
    }
    if (case_->exp_of_sums && IsExponential(factor))
      return Exponential(factor.arguments[0], ranges);
    if (factor.kind == Factor::Kind::kReciprocal) {
      return Reciprocal(factor.arguments[0], ranges);
    }
    if (factor.kind == Factor::Kind::kFunction && factor.function == ScalarOp::kWhere) {
      ISOMER_ASSIGN_OR_RETURN(const Polynomial choice, Choice(factor, ranges));
      if (const Factor* only = OnlyFactor(choice);
          only != nullptr && only->function == ScalarOp::kWhere) {
        return Branch(factor, ranges);
      }
      return Of(choice, ranges);
    }
    if (factor.kind == Factor::Kind::kFunction && factor.function == ScalarOp::kMax) {
      for (Polynomial& argument : factor.arguments) {
        ISOMER_ASSIGN_OR_RETURN(argument, Collected(argument, ranges));
      }
      ISOMER_ASSIGN_OR_RETURN(const Polynomial largest, WithoutCovered(factor, ranges));
      const Factor* left = OnlyFactor(largest);
      if (left == nullptr || left->function != ScalarOp::kMax) return largest;
      return case_->order && IsOfFreeIndices(largest, ranges) ? Largest(*left)
                                                              : Absorbed(*left, ranges);
    }
    return Single(std::move(factor));
  }

  // Equal monomials added up.
  static absl::StatusOr<Polynomial> Collected(const Polynomial& polynomial, const Ranges& ranges) {
    std::map<std::string, Monomial> sum;
    for (const Monomial& monomial : polynomial.monomials) {
      Polynomial unit{{monomial}};
      unit.monomials[0].coefficient.constant = 1;
      ISOMER_ASSIGN_OR_RETURN(std::string text, PolynomialText(unit, ranges, NamesOf(ranges)));
      auto [at, is_new] = sum.emplace(std::move(text), monomial);
      if (is_new) continue;
      ExactNumber& constant = at->second.coefficient.constant;
      constant = constant + monomial.coefficient.constant;
    }
    Polynomial result;
    for (auto& [text, monomial] : sum) {
      if (!monomial.coefficient.constant.IsZero()) result.monomials.push_back(std::move(monomial));
    }
    return result;
  }

  // exp(f + g) is exp(f) * exp(g), and exp(0) is 1.
  static absl::StatusOr<Polynomial> Exponential(const Polynomial& given, const Ranges& ranges) {
    ISOMER_ASSIGN_OR_RETURN(const Polynomial sum, Collected(given, ranges));
    Polynomial product = Constant({1, {}});
    for (const Monomial& summand : sum.monomials) {
      product.monomials[0].factors.push_back(
          Function(ScalarOp::kExp, {Polynomial{{summand}}}).monomials[0].factors[0]);
    }
    return product;
  }

  static absl::Status MergeExponentials(Ranges ranges, Monomial* monomial) {
    Polynomial sum;
    for (const Factor& factor : monomial->factors) {
      if (!IsExponential(factor)) continue;
      const std::vector<Monomial>& summands = factor.arguments[0].monomials;
      sum.monomials.insert(sum.monomials.end(), summands.begin(), summands.end());
    }
    if (sum.monomials.size() < 2) return absl::OkStatus();
    for (const Bound& bound : monomial->bounds) ranges[bound.index] = {0, bound.size};
    ISOMER_ASSIGN_OR_RETURN(const Polynomial merged, Exponential(sum, ranges));
    std::erase_if(monomial->factors, IsExponential);
    const std::vector<Factor>& factors = merged.monomials[0].factors;
    monomial->factors.insert(monomial->factors.end(), factors.begin(), factors.end());
    return absl::OkStatus();
  }

  // Divides the sum by every exp(f) that all of its monomials have and none sums over. Returns the
  // sum of these f. REQUIRES: the exponentials of a monomial are merged.
  static absl::StatusOr<Polynomial> TakeOutExponentials(const Ranges& ranges, Polynomial* sum) {
    std::map<std::string, std::vector<size_t>> places;  // by text: the factor of each monomial
    for (const Monomial& monomial : sum->monomials) {
      for (size_t f = 0; f < monomial.factors.size(); ++f) {
        const Factor& factor = monomial.factors[f];
        const bool is_summed =
            std::any_of(monomial.bounds.begin(), monomial.bounds.end(),
                        [&](const Bound& bound) { return Mentions(Single(factor), bound.index); });
        if (!IsExponential(factor) || is_summed) continue;
        ISOMER_ASSIGN_OR_RETURN(std::string text,
                                PolynomialText(factor.arguments[0], ranges, NamesOf(ranges)));
        places[std::move(text)].push_back(f);
      }
    }
    std::erase_if(places, [&](const auto& p) { return p.second.size() < sum->monomials.size(); });
    Polynomial taken;
    for (size_t m = 0; m < sum->monomials.size(); ++m) {
      std::vector<Factor>& factors = sum->monomials[m].factors;
      std::vector<size_t> mine;
      for (const auto& [text, of_monomials] : places) mine.push_back(of_monomials[m]);
      std::sort(mine.rbegin(), mine.rend());
      for (size_t f : mine) {
        const std::vector<Monomial>& summands = factors[f].arguments[0].monomials;
        if (m == 0) taken.monomials.insert(taken.monomials.end(), summands.begin(), summands.end());
        factors.erase(factors.begin() + static_cast<int64_t>(f));
      }
    }
    return taken;
  }

  absl::StatusOr<Polynomial> Reciprocal(const Polynomial& given, const Ranges& ranges) {
    ISOMER_ASSIGN_OR_RETURN(Polynomial b, Collected(given, ranges));
    Polynomial outside = Constant({1, {}});
    if (case_->exp_of_sums) {
      ISOMER_ASSIGN_OR_RETURN(const Polynomial taken, TakeOutExponentials(ranges, &b));
      ISOMER_ASSIGN_OR_RETURN(outside, Exponential(Scaled(taken, -1), ranges));
    }
    const bool is_product = b.monomials.size() == 1 && b.monomials[0].bounds.empty() &&
                            b.monomials[0].guards.empty() &&
                            !b.monomials[0].coefficient.constant.IsZero();
    if (!is_product) return Times(outside, Single(FactorOf(Factor::Kind::kReciprocal, b)));
    const Monomial& monomial = b.monomials[0];
    Polynomial product = outside;
    product.monomials[0].coefficient.constant = ExactNumber(1) / monomial.coefficient.constant;
    for (const std::string& variable : monomial.coefficient.variables) {
      product.monomials[0].factors.push_back(
          FactorOf(Factor::Kind::kReciprocal, Constant({1, {variable}})));
    }
    for (const Factor& factor : monomial.factors) {
      if (factor.kind == Factor::Kind::kReciprocal) {
        ISOMER_ASSIGN_OR_RETURN(product, Times(product, factor.arguments[0]));
      } else {
        const Factor one = FactorOf(Factor::Kind::kReciprocal, Single(factor));
        ISOMER_ASSIGN_OR_RETURN(product, Times(product, Single(one)));
      }
    }
    return product;
  }

  absl::StatusOr<Polynomial> Maximum(const Factor& given, const Ranges& ranges) {
    Factor maximum = given;
    Ranges inner = ranges;
    for (const Bound& bound : maximum.bounds) inner[bound.index] = {0, bound.size};
    ISOMER_ASSIGN_OR_RETURN(maximum.arguments[0], Of(maximum.arguments[0], inner));
    std::erase_if(maximum.bounds, [&](const Bound& bound) {
      if (bound.size == Extent(1)) SubstituteIn(&maximum.arguments[0], bound.index, Affine());
      return !Mentions(maximum.arguments[0], bound.index);
    });
    if (maximum.bounds.empty()) return maximum.arguments[0];
    for (size_t i = 0; i < maximum.bounds.size(); ++i) {
      std::set<Extent> cuts;
      CollectCuts(maximum.arguments[0], maximum.bounds[i].index, {}, &cuts);
      const auto pieces = Pieces(cuts, maximum.bounds[i].size);
      // A maximum over nothing is no number: pieces must not be empty at any size.
      const bool cut = pieces.ok() && pieces->size() > 1 &&
                       std::all_of(pieces->begin(), pieces->end(), [](const IndexRange& piece) {
                         return IsNonNegative(piece.upper - piece.lower - 1);
                       });
      if (cut) return OverPieces(maximum, i, *pieces, ranges);
    }
    const Factor* only = OnlyFactor(maximum.arguments[0]);
    if (only != nullptr && only->kind == Factor::Kind::kMaximum) {
      const Factor nested = *only;
      maximum.bounds.insert(maximum.bounds.end(), nested.bounds.begin(), nested.bounds.end());
      maximum.arguments = nested.arguments;
    } else if (only != nullptr && only->kind == Factor::Kind::kFunction &&
               only->function == ScalarOp::kMax) {
      const Factor pointwise = *only;
      std::vector<Polynomial> parts;
      for (const Polynomial& argument : pointwise.arguments) {
        maximum.arguments[0] = argument;
        ISOMER_ASSIGN_OR_RETURN(Polynomial part, Maximum(Fresh(maximum), ranges));
        parts.push_back(std::move(part));
      }
      return Of(Function(ScalarOp::kMax, std::move(parts)), ranges);
    }
    return Single(std::move(maximum));
  }

  Factor Fresh(const Factor& factor) {
    return Renamed(Single(factor).monomials[0], &next_).factors[0];
  }

  // The maximum of the maxima over the pieces of bound i.
  absl::StatusOr<Polynomial> OverPieces(const Factor& maximum, size_t i,
                                        const std::vector<IndexRange>& pieces,
                                        const Ranges& ranges) {
    std::optional<Polynomial> all;
    for (const IndexRange& piece : pieces) {
      Factor part = Fresh(maximum);
      Affine shifted = Affine::Variable(part.bounds[i].index);
      shifted.offset = piece.lower;
      part.bounds[i].size = piece.upper - piece.lower;
      SubstituteIn(&part.arguments[0], part.bounds[i].index, shifted);
      ISOMER_ASSIGN_OR_RETURN(Polynomial simple, Maximum(part, ranges));
      all =
          all ? Function(ScalarOp::kMax, {*std::move(all), std::move(simple)}) : std::move(simple);
    }
    return Of(*all, ranges);
  }

  // where(a < b, b, a) is max(a, b), where(a < b, a, b) min(a, b); and with integers l <= h,
  // where(a < l, l, min(a, h)) is max(l, min(a, h)).
  absl::StatusOr<Polynomial> Choice(const Factor& where, const Ranges& ranges) {
    const Factor* less = OnlyFactor(where.arguments[0]);
    if (less == nullptr || less->kind != Factor::Kind::kFunction ||
        less->function != ScalarOp::kLess) {
      return Single(where);
    }
    const IndexNames names = NamesOf(ranges);
    auto text = [&](const Polynomial& p) { return PolynomialText(p, ranges, names); };
    const Polynomial &a = less->arguments[0], &b = less->arguments[1];
    const Polynomial &yes = where.arguments[1], &no = where.arguments[2];
    auto minimum = [](const Polynomial& x, const Polynomial& y) {
      return Scaled(Function(ScalarOp::kMax, {Scaled(x, -1), Scaled(y, -1)}), -1);
    };
    ISOMER_ASSIGN_OR_RETURN(const std::string a_text, text(a));
    ISOMER_ASSIGN_OR_RETURN(const std::string b_text, text(b));
    ISOMER_ASSIGN_OR_RETURN(const std::string yes_text, text(yes));
    ISOMER_ASSIGN_OR_RETURN(const std::string no_text, text(no));
    if (yes_text == b_text && no_text == a_text) return Function(ScalarOp::kMax, {a, b});
    if (yes_text == a_text && no_text == b_text) return minimum(a, b);
    int sign = 1;
    const Factor* bounded = OnlyMaximum(no, &sign);
    if (bounded == nullptr || sign > 0 || yes_text != b_text) return Single(where);
    for (int i : {0, 1}) {
      const Polynomial high = Scaled(bounded->arguments[i], -1);
      const std::optional<int64_t> h = OnlySmallInteger(high), l = OnlySmallInteger(b);
      ISOMER_ASSIGN_OR_RETURN(const std::string other, text(Scaled(bounded->arguments[1 - i], -1)));
      if (h && l && *l <= *h && other == a_text) {
        return Function(ScalarOp::kMax, {b, no});
      }
    }
    return Single(where);
  }

  bool IsOfFreeIndices(const Polynomial& polynomial, const Ranges& ranges) const {
    return std::none_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return !free_.contains(range.first) && Mentions(polynomial, range.first);
    });
  }

  // The branch of a choice that is taken in this case.
  absl::StatusOr<Polynomial> Branch(const Factor& where, const Ranges& ranges) {
    const Polynomial& condition = where.arguments[0];
    if (!IsOfFreeIndices(condition, ranges)) return Single(where);
    ISOMER_ASSIGN_OR_RETURN(const std::string text,
                            PolynomialText(condition, free_, NamesOf(free_)));
    const auto decided = case_->decided.find(text);
    if (decided != case_->decided.end()) return where.arguments[decided->second ? 1 : 2];
    if (!case_->open) case_->open = text;
    return Single(where);
  }

  // The atoms of maxima and minima, by text; those with a minus by the text of their negation.
  static absl::Status CollectAtomsOf(const Polynomial& polynomial, const Ranges& ranges,
                                     std::map<std::string, Polynomial>* atoms) {
    int sign = 1;
    if (const Factor* maximum = OnlyMaximum(polynomial, &sign); maximum != nullptr) {
      for (const Polynomial& argument : maximum->arguments) {
        ISOMER_RETURN_IF_ERROR(CollectAtomsOf(argument, ranges, atoms));
      }
      return absl::OkStatus();
    }
    ISOMER_ASSIGN_OR_RETURN(const LatticeTerm atom,
                            LatticeTermOf(polynomial, ranges, NamesOf(ranges)));
    atoms->emplace(atom.atom, Scaled(polynomial, atom.sign));
    return absl::OkStatus();
  }

  static absl::StatusOr<Polynomial> Absorbed(const Factor& maximum, const Ranges& ranges) {
    const Polynomial whole = Single(maximum);
    ISOMER_ASSIGN_OR_RETURN(const LatticeTerm term, LatticeTermOf(whole, ranges, NamesOf(ranges)));
    ISOMER_ASSIGN_OR_RETURN(const LatticeForm form, LatticeFormOf(term));
    if (!form.only_atom) return whole;
    return OfForm(form, whole, ranges);
  }

  // The argument of a maximum of free indices that is the largest in this case.
  absl::StatusOr<Polynomial> Largest(const Factor& maximum) {
    const Polynomial whole = Single(maximum);
    ISOMER_ASSIGN_OR_RETURN(const LatticeTerm term, LatticeTermOf(whole, free_, NamesOf(free_)));
    std::set<std::string> atoms;
    std::set<int64_t> constants;
    CollectAtoms(term, &atoms, &constants);
    for (const std::string& atom : atoms) {
      if (case_->order->atoms.contains(atom)) continue;
      if (!case_->open_atom) case_->open_atom = atom;
      return whole;
    }
    const std::optional<LatticeForm> form = FormIn(*case_->order, term);
    if (!form) return whole;
    return OfForm(*form, whole, free_);
  }

  // REQUIRES: form.only_atom.
  static absl::StatusOr<Polynomial> OfForm(const LatticeForm& form, const Polynomial& maximum,
                                           const Ranges& ranges) {
    if (form.integer) return Constant({*form.integer, {}});
    std::map<std::string, Polynomial> atoms;
    ISOMER_RETURN_IF_ERROR(CollectAtomsOf(maximum, ranges, &atoms));
    return Scaled(atoms.at(form.text), form.sign);
  }

  const Ranges& free_;
  Case* const case_;
  int next_ = kFirstFresh;
};

}  // namespace

absl::StatusOr<Polynomial> Simplified(const Polynomial& polynomial, const Ranges& ranges,
                                      Case* in_case) {
  return Simplifier(ranges, in_case).Of(polynomial, ranges);
}

void CollectConstants(const Polynomial& polynomial, std::set<int64_t>* constants) {
  for (const Monomial& monomial : polynomial.monomials) {
    for (const Factor& factor : monomial.factors) {
      for (const Polynomial& argument : factor.arguments) {
        CollectConstants(argument, constants);
        if (factor.function != ScalarOp::kMax) continue;
        const std::optional<int64_t> number = OnlySmallInteger(argument);
        if (number && *number != 0) constants->insert(std::abs(*number));
      }
    }
  }
}

}  // namespace isomer
