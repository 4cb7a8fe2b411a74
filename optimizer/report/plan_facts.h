// Statistics of a plan.
#ifndef ISOMER_OPTIMIZER_REPORT_PLAN_FACTS_H_
#define ISOMER_OPTIMIZER_REPORT_PLAN_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pcg/ir/plan.h"
#include "rules/language/rule.h"

namespace isomer {

// Number of uses of a rule in the derivation.
struct RuleUse {
  std::string id;
  std::string kind;  // "algebra", "split" (of a call) or "chain" (of parallel operators)
  std::string text;
  int64_t times = 0;
};
// Most used first.
std::vector<RuleUse> RulesUsed(const Plan& plan, const RuleSet& rules);

// Compute operators among those recomputed for the backward pass.
int64_t RecomputedOperators(const Plan& plan);
// And those whose results lie in the host's memory until then.
int64_t OffloadedOperators(const Plan& plan);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REPORT_PLAN_FACTS_H_
