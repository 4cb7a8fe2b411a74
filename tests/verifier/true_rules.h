// Rules that are true, and changes of them that are not.
#ifndef ISOMER_TESTS_VERIFIER_TRUE_RULES_H_
#define ISOMER_TESTS_VERIFIER_TRUE_RULES_H_

#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

std::vector<Rule> TrueRules();

struct MutatedRule {
  std::string change;
  Rule rule;
};
std::vector<MutatedRule> Mutants();

}  // namespace isomer

#endif  // ISOMER_TESTS_VERIFIER_TRUE_RULES_H_
