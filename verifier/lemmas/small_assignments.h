// Assignments to a rule's variables that make its two sides small graphs.
#ifndef ISOMER_VERIFIER_LEMMAS_SMALL_ASSIGNMENTS_H_
#define ISOMER_VERIFIER_LEMMAS_SMALL_ASSIGNMENTS_H_

#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// At most `most` assignments that `rule` admits and its source type-checks at: sizes up to 4, no
// tensor partitioned, degrees of 1. First those of representative calls and near them, spread; then
// drawn ones, for rules whose attributes are constants.
std::vector<Binding> SmallAssignments(const Rule& rule, int most);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_SMALL_ASSIGNMENTS_H_
