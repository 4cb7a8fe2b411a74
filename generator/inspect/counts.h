// What a rules file holds, in numbers.
#ifndef ISOMER_GENERATOR_INSPECT_COUNTS_H_
#define ISOMER_GENERATOR_INSPECT_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pcg/support/json.h"
#include "rules/language/rule.h"

namespace isomer {

struct RuleCount {
  int64_t rules = 0;
  int64_t instances = 0;  // at degree 2 (instances.h), each counted with the first rule that has it
};

struct RuleCounts {
  std::string generator, digest;
  RuleCount all, algebra, parallel, mixing, moving, joint, reversible;
  RuleCount proved;   // from lemmas that are all proved
  RuleCount checked;  // proved, but some lemmas are only checked at small sizes
  RuleCount unproved;
  // By name, those that occur: operators in the order of the list of operators, a rule counted with
  // each that it has.
  std::vector<std::pair<std::string, RuleCount>> operators;
  std::map<int, RuleCount> sizes;             // operators of the larger side
  std::map<std::string, RuleCount> origins;   // "expansion", "enumerated", ..
  std::map<std::string, int64_t> conditions;  // rules with a condition of the kind; "none"
};

// `instances`: count them too, which takes about 2 ms a rule; else their numbers are 0.
RuleCounts CountRules(const RuleSet& rules, bool instances = true);

// A table for the terminal, a page for rules/README.md (its text: what a rules file is), and an
// object with the same numbers.
std::string CountsText(const RuleCounts& counts);
std::string CountsPage(const RuleCounts& counts);
Json CountsJson(const RuleCounts& counts);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_COUNTS_H_
