// Guards of monomials: decided from the ranges of indices, and taken up into ranges of sums.
#ifndef ISOMER_VERIFIER_ELEMENTS_GUARDS_H_
#define ISOMER_VERIFIER_ELEMENTS_GUARDS_H_

#include <map>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "verifier/elements/polynomial.h"

namespace isomer {

// The range of an index: [lower, upper).
struct IndexRange {
  Extent lower, upper;
};
using Ranges = std::map<int, IndexRange>;

// True if `extent` >= 0 whatever its symbols (>= 1) are; false if that is not known.
bool IsNonNegative(const Extent& extent);

// Decides guards and narrows sums until nothing changes; sums over one element are substituted.
// `ranges`, of all free indices, gets those of the sums. False: the monomial is zero.
bool DecideGuards(Monomial* monomial, Ranges* ranges);

// Where guards of the index `v` alone change, and beyond which those of `v` and `others` do not
// hold, wherever these are in their ranges.
void CollectCuts(const Polynomial& polynomial, int v, const Ranges& others, std::set<Extent>* cuts);

// The pieces of [0, size) between the cuts, or an error if their order depends on the sizes.
absl::StatusOr<std::vector<IndexRange>> Pieces(const std::set<Extent>& cuts, const Extent& size);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_ELEMENTS_GUARDS_H_
