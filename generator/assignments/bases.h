// Where a rule can be tried that comes from a file, without knowledge of how it was found.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_BASES_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_BASES_H_

#include <cstdint>
#include <vector>

#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

// For every rank vector of the rule, an assignment with all degrees 1 under which its source
// type-checks, if one is found: sizes `unit` or sums of it; axes at any value; for attribute
// variables, the sample calls of the operator that has them.
std::vector<Binding> BasesOf(const Rule& rule, int64_t unit, TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_BASES_H_
