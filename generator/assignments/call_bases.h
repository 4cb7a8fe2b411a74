// Bases of rules in which a call stands among other operators.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_CALL_BASES_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_CALL_BASES_H_

#include <vector>

#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

// Assignments with all degrees 1 under which the source of `rule` type-checks and its conditions
// hold, and source node `subject` is one of its operator's sample calls: the inputs are what the
// call's operands are made of, through Concats, Splits, elementwise and parallel operators; other
// calls of the operator are the same call. Axes take every value that fits.
std::vector<Binding> BasesAroundCall(const Rule& rule, int subject, TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_CALL_BASES_H_
