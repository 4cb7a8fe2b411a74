#include "verifier/normal_form.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/polynomial_text.h"
#include "verifier/simplify.h"

namespace isomer {

namespace {

constexpr size_t kMaxRegions = 256;

}  // namespace

absl::StatusOr<std::string> NormalForm(const Polynomial& polynomial, const Ranges& ranges) {
  IndexNames names;
  for (const auto& [v, range] : ranges) names[v] = absl::StrCat("i", v);
  ISOMER_ASSIGN_OR_RETURN(const Polynomial simple, Simplified(polynomial, ranges));
  return PolynomialText(simple, ranges, names);
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
    ISOMER_ASSIGN_OR_RETURN(const std::string left_form, NormalForm(left, region));
    ISOMER_ASSIGN_OR_RETURN(const std::string right_form, NormalForm(right, region));
    if (left_form != right_form) return false;
  }
  return true;
}

}  // namespace isomer
