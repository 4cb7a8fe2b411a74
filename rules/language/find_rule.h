// Rules by what people type of their ids.
#ifndef ISOMER_RULES_LANGUAGE_FIND_RULE_H_
#define ISOMER_RULES_LANGUAGE_FIND_RULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

// The id of the rule that plans name so, or whose inverse they do: without its "^-1".
std::string WithoutInverse(const std::string& id);

// The rule whose id is or begins with `name`, without the "^-1" with which plans name its inverse.
// Errors: there is none, or there are several.
absl::StatusOr<const Rule*> FindByPrefix(const RuleSet& rules, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_RULES_LANGUAGE_FIND_RULE_H_
