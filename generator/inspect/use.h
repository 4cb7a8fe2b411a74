// Which rules plans are made of: of each rule where it could have been used, and where it was.
#ifndef ISOMER_GENERATOR_INSPECT_USE_H_
#define ISOMER_GENERATOR_INSPECT_USE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/inspect/kinds.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "rules/language/rule.h"

namespace isomer {

struct UseOfRule {
  std::string id;  // of an inverse that of the rule
  RuleKind kind = RuleKind::kAlgebra;
  std::string text;
  int64_t plans = 0, steps = 0;  // that use it, and how often they do
  // Of algebra, in the graphs of the plans' models as they were imported: models with a match of
  // either side that a reversible rule may begin with, and matches, by the nodes that they are of.
  // Rules with parallel operators match what a plan has split, and are not looked for.
  int64_t models = 0, matches = 0;
};

struct UseOfRules {
  int64_t plans = 0;
  int64_t defined_steps = 0;     // without a rule: what a call is defined to be
  std::vector<UseOfRule> rules;  // of the file, those that most plans use first, then most matched
};

// Error, naming the model: a step of a rule that `rules` has not. REQUIRES: RuleSet::BuildIndex.
absl::StatusOr<UseOfRules> CountUse(const RuleSet& rules, const std::vector<Plan>& plans);

// How many rules are used, are only matched, and neither; and a line for each that is used.
std::string UseText(const UseOfRules& use);
Json UseJson(const UseOfRules& use);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_USE_H_
