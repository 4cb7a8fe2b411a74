// The rules file in the repository, loaded once.
#ifndef ISOMER_TESTS_GENERATOR_SHIPPED_RULES_H_
#define ISOMER_TESTS_GENERATOR_SHIPPED_RULES_H_

#include "rules/language/rule.h"

namespace isomer {

const RuleSet& ShippedRules();

}  // namespace isomer

#endif  // ISOMER_TESTS_GENERATOR_SHIPPED_RULES_H_
