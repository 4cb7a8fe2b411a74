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
                             std::map<std::string, bool> decided) {
  Case now{decided, std::nullopt};
  ISOMER_ASSIGN_OR_RETURN(const std::string left_form, NormalForm(left, region, &now));
  ISOMER_ASSIGN_OR_RETURN(const std::string right_form, NormalForm(right, region, &now));
  if (left_form == right_form) return true;
  if (!now.open || decided.size() == kMaxConditions) return false;
  for (const bool holds : {true, false}) {
    decided[*now.open] = holds;
    ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(region, left, right, decided));
    if (!equal) return false;
  }
  return true;
}

// The dims of `shape` that some call in the term makes of an outer and an inner iteration dim
// (groups x channels): the size of the inner.
void CollectMergedDims(const TermPool& pool, TermId id, const Shape& shape,
                       std::map<int, int64_t>* merged) {
  const Term& term = pool[id];
  for (TermId argument : term.arguments) CollectMergedDims(pool, argument, shape, merged);
  if (term.symbol.kind == OpKind::kInput || IsParallel(term.symbol.kind) ||
      term.shape.size() != shape.size()) {
    return;
  }
  std::vector<Shape> operands;
  for (TermId argument : term.arguments) operands.push_back(pool[argument].shape);
  const absl::StatusOr<Operator> op = OperatorOf(term.symbol, operands);
  if (!op.ok()) return;
  const absl::StatusOr<Declaration> d = Declare(*op, operands);
  if (!d.ok()) return;
  for (const Statement& s : d->statements) {
    if (s.output != term.symbol.index) continue;
    for (size_t i = 0; i < s.indices.size(); ++i) {
      const auto& terms = s.indices[i].terms;
      if (terms.size() == 2 && term.shape[i] == shape[i] && shape[i].known()) {
        merged->emplace(static_cast<int>(i), terms[0].second);
      }
    }
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
                                   const std::map<int, double>& numbers) {
  if (pool[a].shape != pool[b].shape) return false;
  Shape shape = pool[a].shape;  // of the indices
  std::map<int, int64_t> merged;
  CollectMergedDims(pool, a, shape, &merged);
  CollectMergedDims(pool, b, shape, &merged);
  ElementReader reader(pool);
  for (const auto& [variable, number] : numbers) reader.KnowValue(variable, number);
  std::vector<Affine> element;
  for (int i = 0; i < static_cast<int>(pool[a].shape.size()); ++i) {
    element.push_back(Affine::Variable(i));
    const auto inner = merged.find(i);
    if (inner == merged.end()) continue;
    // (outer, inner): dim i counts the outer, and another index the inner.
    const int v = static_cast<int>(shape.size());
    element[i] = Affine::Variable(i) * inner->second + Affine::Variable(v);
    reader.Know(v, inner->second);
    shape.push_back(inner->second);
    shape[i] = shape[i].value() / inner->second;
  }
  const int rank = static_cast<int>(shape.size());
  ISOMER_ASSIGN_OR_RETURN(const Polynomial left, reader.Read(a, element));
  ISOMER_ASSIGN_OR_RETURN(const Polynomial right, reader.Read(b, element));
  std::vector<std::set<Extent>> cuts(rank);
  for (int i = 0; i < rank; ++i) {
    CollectCuts(left, i, &cuts[i]);
    CollectCuts(right, i, &cuts[i]);
  }
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
    ISOMER_ASSIGN_OR_RETURN(const bool equal, EqualIn(region, left, right, {}));
    if (!equal) return false;
  }
  return true;
}

}  // namespace isomer
