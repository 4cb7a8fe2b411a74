// All that is asked of a plan, without the model that it is to be of.
#ifndef ISOMER_VERIFIER_PLANS_JUDGE_PLAN_H_
#define ISOMER_VERIFIER_PLANS_JUDGE_PLAN_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"
#include "rules/language/rule.h"
#include "verifier/certificate/certificate.h"

namespace isomer {

struct PlanJudgeOptions {
  CertificateOptions certificate = {.schedule = ScheduleCheck::kClasses};
  bool reprove = false;  // every rule that the plan was made with, for all sizes
};

// "classes", "all" or "none": --schedule.
absl::StatusOr<ScheduleCheck> ParseScheduleCheck(absl::string_view name);

// Ok if the plan's fields mean something and its certificate holds (certificate.h); the error says
// in one line what is refused and why. `rules_proved` receives how many rules were proved, if that
// is asked.
absl::Status JudgePlan(const Plan& plan, const RuleSet& rules, const PlanJudgeOptions& options,
                       CertificateReport* report, std::optional<int>* rules_proved);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLANS_JUDGE_PLAN_H_
