#include "verifier/plans/judge_plan.h"

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/plans/plan_checker.h"
#include "verifier/plans/plan_fields.h"
#include "verifier/proving/prover.h"

namespace isomer {

absl::StatusOr<ScheduleCheck> ParseScheduleCheck(absl::string_view name) {
  if (name == "classes") return ScheduleCheck::kClasses;
  if (name == "all") return ScheduleCheck::kAll;
  if (name == "none") return ScheduleCheck::kNone;
  return absl::InvalidArgumentError(
      absl::StrCat("--schedule=", name, ": there are classes, all and none"));
}

absl::Status JudgePlan(const Plan& plan, const RuleSet& rules, const PlanJudgeOptions& options,
                       CertificateReport* report, std::optional<int>* rules_proved) {
  ISOMER_RETURN_IF_ERROR(CheckPlanFields(plan));
  ISOMER_RETURN_IF_ERROR(CheckCertificate(plan, rules, options.certificate, report));
  if (!options.reprove) return absl::OkStatus();
  Prover prover;
  ISOMER_ASSIGN_OR_RETURN(*rules_proved, ProveRulesOf(plan, rules, &prover));
  return absl::OkStatus();
}

}  // namespace isomer
