// The conditions that a rule may be given, and the choice among them.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_VOCABULARY_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_VOCABULARY_H_

#include <optional>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// Every condition that speaks of the rule's variables and inputs, from weak to strong.
std::vector<Condition> Vocabulary(const Rule& rule);

// At most five conditions that exclude every `failure` and admit the most of `successes`; fewer, if
// more would not admit a fifth more. Nullopt if there are none, or none that admit a success.
std::optional<std::vector<Condition>> ExcludeFailures(const Rule& rule,
                                                      const std::vector<Binding>& successes,
                                                      const std::vector<Binding>& failures);

// How many of `bindings` satisfy all of `conditions`, which are of the vocabulary.
int CountAdmitted(const std::vector<Condition>& conditions, const std::vector<Binding>& bindings);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_VOCABULARY_H_
