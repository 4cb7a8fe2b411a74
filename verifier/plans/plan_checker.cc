#include "verifier/plans/plan_checker.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/certificate/step_replay.h"
#include "verifier/plans/plan_fields.h"

namespace isomer {

absl::Status CheckPlan(const Plan& plan, const RuleSet& rules) {
  ISOMER_RETURN_IF_ERROR(CheckPlanFields(plan));
  return CheckCertificate(plan, rules, {});
}

absl::StatusOr<int> ProveRulesOf(const Plan& plan, const RuleSet& rules, Prover* prover) {
  std::set<std::string> ids;
  for (const DerivationStep& step : plan.steps) {
    if (!step.rule.empty()) ids.emplace(absl::StripSuffix(step.rule, "^-1"));
  }
  for (const std::string& id : ids) {
    const Rule* rule = rules.Find(id);
    if (rule == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("rule ", id, ": not in the rules file"));
    }
    const ProofRecord record = prover->Prove(*rule);
    if (record.verdict == ProofRecord::Verdict::kProved) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rule ", id, ": ", VerdictName(record.verdict), ": ", record.note));
  }
  return static_cast<int>(ids.size());
}

absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph) {
  ReplayGraph replay(*graph);
  ISOMER_RETURN_IF_ERROR(ReplayStep(
      rule, step, &replay,
      [](const ConcreteSide& source, const ConcreteSide& target, const InputNumbers& numbers) {
        std::set<std::string> lemmas;
        return EqualSides(source, target, &lemmas, numbers).status();
      }));
  ISOMER_ASSIGN_OR_RETURN(*graph, replay.ToGraph());
  return absl::OkStatus();
}

}  // namespace isomer
