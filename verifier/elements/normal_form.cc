#include "verifier/elements/normal_form.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/elements/polynomial_text.h"

namespace isomer {

namespace {

constexpr size_t kMaxRegions = 256, kMaxConditions = 6;

// Whether the polynomials have one normal form in the region, in each case that `decided` leaves.
absl::StatusOr<bool> EqualIn(const Ranges& region, const Polynomial& left, const Polynomial& right,
                             std::map<std::string, bool> decided, Exp exp) {
  Case now{decided, std::nullopt, exp == Exp::kOfSums};
  ISOMER_ASSIGN_OR_RETURN(const std::string left_form, NormalForm(left, region, &now));
  ISOMER_ASSIGN_OR_RETURN(const std::string right_form, NormalForm(right, region, &now));
  if (left_form == right_form) return true;
  if (!now.open || decided.size() == kMaxConditions) return false;
  for (const bool holds : {true, false}) {
    decided[*now.open] = holds;
    ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(region, left, right, decided, exp));
    if (!equal) return false;
  }
  return true;
}

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

absl::StatusOr<bool> ProvablyEqual(const TermPool& pool, TermId a, TermId b,
                                   const std::map<int, double>& numbers, Exp exp) {
  if (pool[a].shape != pool[b].shape) return false;
  ISOMER_ASSIGN_OR_RETURN(const Elements elements, ReadBoth(pool, a, b, numbers));
  const auto& [free, left, right] = elements;
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
    ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(region, left, right, {}, exp));
    if (!equal) return false;
  }
  return true;
}

}  // namespace isomer
