// Trying a family rule at the calls that its spread was found in.
#ifndef ISOMER_GENERATOR_SCHEMAS_FAMILY_TRIAL_H_
#define ISOMER_GENERATOR_SCHEMAS_FAMILY_TRIAL_H_

#include <vector>

#include "generator/assignments/sampler.h"
#include "generator/schemas/family_forms.h"

namespace isomer {

// A call, not parallel, with the variables of the rules of its family bound.
struct FamilyCall {
  CallSpread spread;
  Binding binding;
};

// Whether `rule` holds at every call: types, wherever its source type-checks with inputs held as
// the rule's operators have them, more or less than that; values, at some of those.
// REQUIRES: the rule's ranks are set.
bool HoldsAtCalls(const Rule& rule, const std::vector<FamilyCall>& calls, TypeOracle* oracle,
                  Random* random);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_FAMILY_TRIAL_H_
