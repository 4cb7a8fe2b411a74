// Making symbolic sizes equal, where a call can only be typed if they are.
#ifndef ISOMER_VERIFIER_TERMS_SIZE_UNIFICATION_H_
#define ISOMER_VERIFIER_TERMS_SIZE_UNIFICATION_H_

#include <map>
#include <optional>

#include "absl/status/status.h"
#include "pcg/ir/extent.h"

namespace isomer {

using Substitution = std::map<int, Extent>;  // of size symbols

Extent Substituted(const Extent& extent, const Substitution& substitution);

// Two sizes that a call or a condition needs to be equal.
struct SizeConflict {
  Extent a, b;
  // Or, perhaps, one of them to be 1: whether it is then broadcast, the declaration tells. Never
  // false of a call: a list of operators that broadcast would be a second declaration, and a case
  // that it forgets is a case that nothing proves.
  bool or_one = false;
};

// What a declaration's error says of sizes (kSizeMismatch), if it says so.
std::optional<SizeConflict> ConflictOf(const absl::Status& status);

bool IsBareSymbol(const Extent& extent);

enum class Unification {
  kDone,           // the substitution makes them equal
  kImpossible,     // no sizes >= 1 do
  kInexpressible,  // no substitution of one symbol does: 2*s0 == 3*s1
};
// Extends `substitution` so that a == b. REQUIRES: it was applied to both.
Unification Unify(const Extent& a, const Extent& b, Substitution* substitution);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_SIZE_UNIFICATION_H_
