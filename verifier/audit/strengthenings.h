// Conditions under which a rule may hold that does not hold as it stands.
#ifndef ISOMER_VERIFIER_AUDIT_STRENGTHENINGS_H_
#define ISOMER_VERIFIER_AUDIT_STRENGTHENINGS_H_

#include <vector>

#include "verifier/audit/translate.h"

namespace isomer {

using Conditions = std::vector<Condition>;

// Groups of conditions, to be added one after the other: that nothing is broadcast; that degrees
// divide; that inputs alike but for one size are alike; no partial sums; no partitioning; equal
// types.
std::vector<Conditions> Strengthenings(const Translation& translation);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_STRENGTHENINGS_H_
