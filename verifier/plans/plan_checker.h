// Checks all of a plan: its fields, its certificate (certificate/certificate.h), and, if asked, the
// rules that it was made with.
#ifndef ISOMER_VERIFIER_PLANS_PLAN_CHECKER_H_
#define ISOMER_VERIFIER_PLANS_PLAN_CHECKER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"
#include "verifier/certificate/certificate.h"
#include "verifier/proving/prover.h"

namespace isomer {

// CheckPlanFields and CheckCertificate, the schedule of all devices included.
absl::Status CheckPlan(const Plan& plan, const RuleSet& rules);

// Proves every rule that the plan uses, for all sizes and attributes that it admits. No certificate
// needs that: steps are decided by their own calls. Returns how many there are; the error names
// the first that is not proved, and what else was found of it.
absl::StatusOr<int> ProveRulesOf(const Plan& plan, const RuleSet& rules, Prover* prover);

// One step alone, on a graph that need not be a model's.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLANS_PLAN_CHECKER_H_
