#include "verifier/plan_checker.h"

#include <set>
#include <string>

#include "pcg/support/status_macros.h"
#include "rules/structure.h"
#include "verifier/certificate/step_replay.h"

namespace isomer {

absl::Status ProverSource::Prove(const Rule& rule) {
  const ProofRecord record = prover_->Prove(rule);
  if (record.verdict == ProofRecord::Verdict::kProved) return absl::OkStatus();
  return absl::FailedPreconditionError(record.note);
}

absl::Status ProverSource::CheckPremises(const ConcreteSide& source, const ConcreteSide& target) {
  std::set<std::string> lemmas;
  return EqualByStructure(source, target, &lemmas);
}

absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, Prover* reprove) {
  ProverSource proofs(reprove);
  return CheckCertificate(plan, rules, &proofs, {.reprove = reprove != nullptr});
}

absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph) {
  ProverSource proofs(nullptr);
  ReplayGraph replay(*graph);
  ISOMER_RETURN_IF_ERROR(
      ReplayStep(rule, step, &replay, [&](const ConcreteSide& source, const ConcreteSide& target) {
        return proofs.CheckPremises(source, target);
      }));
  ISOMER_ASSIGN_OR_RETURN(*graph, replay.ToGraph());
  return absl::OkStatus();
}

}  // namespace isomer
