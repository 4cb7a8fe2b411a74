// Small changes of patterns: what goes wrong when a rule is written.
#ifndef ISOMER_VERIFIER_MUTATION_PATTERN_CHANGES_H_
#define ISOMER_VERIFIER_MUTATION_PATTERN_CHANGES_H_

#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

struct ChangedRule {
  std::string change;
  Rule rule;  // well formed, with an id of its own
};

// Every rule that differs from `rule` in one place: of its target an operator, an operand, an axis,
// degree, size, factor or output that is another; a node left out, doubled or exchanged with its
// consumer; outputs exchanged; a condition left out.
std::vector<ChangedRule> ChangesOf(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_PATTERN_CHANGES_H_
