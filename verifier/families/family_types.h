// The types half of a family's theorem, for all declarations of its call at once.
//
// All that types require is a statement on exponents of primes (type_proof.h). Of a call, those of
// one prime are: the degree v of the split dim; for each operand, the tasks that share a shard of
// it because of other dims or of partials; copies c of the call; partials p that operands hold and
// sum dims make. Parallel operators of a family change the degree of the one axis that the split
// dim leads, copies, or partials: the degrees of all other dims, which operands hold partials, and
// the tasks that share a shard because of them are the same unknowns on both sides, whatever the
// declaration is. So the theorem has a few unknowns per operand, and what little a form needs to
// know of the declaration besides (CallFacts) is asked of it.
#ifndef ISOMER_VERIFIER_FAMILIES_FAMILY_TYPES_H_
#define ISOMER_VERIFIER_FAMILIES_FAMILY_TYPES_H_

#include <string>
#include <vector>

#include "pcg/ir/declaration.h"
#include "verifier/families/family.h"

namespace isomer {

// What holds of all calls of a family.
struct CallFacts {
  int operands = 0;
  // Per operand: some linear set has it, all have it; every dim that can be partitioned leads an
  // axis of it.
  std::vector<bool> takes_partials, always_takes_partials, led_by_all;
  int sum_dims = 0;  // that can be partitioned, at most
  // The linear sets: those of each declaration, each once.
  std::vector<std::vector<std::vector<bool>>> linear_sets;

  // `passes_partials`: PassesPartials of the call.
  void Add(const Declaration& d, bool passes_partials);
  // Of those of `other`, too.
  void Merge(const CallFacts& other);
  // Every call is linear in `set`, and in no smaller set that is not empty.
  bool AreLinearIn(const std::vector<bool>& set) const;
};

// Whether the target type-checks with the source's output types whenever the source type-checks.
// `why`: what does not follow.
bool FamilyTypesAgree(const Rule& rule, const Family& family, const CallFacts& facts,
                      std::string* why);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILIES_FAMILY_TYPES_H_
