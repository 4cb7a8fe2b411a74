// Checks a plan's certificate: that its graph computes what the model does, and that it can run.
#ifndef ISOMER_VERIFIER_PLAN_CHECKER_H_
#define ISOMER_VERIFIER_PLAN_CHECKER_H_

#include "absl/status/status.h"
#include "pcg/plan.h"
#include "rules/rule.h"
#include "verifier/prover.h"

namespace isomer {

// Ok if
//   - the model's graph is valid and sequential, and the plan is as its maker sealed it;
//   - every step's rule is in `rules`, is the rule that its id says, and has a proof (with
//     `reprove`: is proved again, now), and the plan was made with these rules;
//   - replayed step by step, with a matcher of the verifier's own, the derivation turns the model's
//     graph into the plan's, node by node;
//   - types are those that inference gives, and machine views put each task on a device of its own;
//   - the lowered schedule passes CheckSchedule (pcg/schedule/check.h).
// The error says in one line what is refused and why.
absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, Prover* reprove = nullptr);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLAN_CHECKER_H_
