#include "verifier/plan_checker.h"

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/structure.h"
#include "verifier/certificate/step_replay.h"
#include "verifier/plan_fields.h"

namespace isomer {

absl::Status ProverSource::Prove(const Rule& rule) {
  std::optional<ProofRecord> record = own_.Find(rule);
  if (!record.has_value() && cache_ != nullptr) {
    record = cache_->Find(rule);
    if (record.has_value()) ++from_cache_;
  }
  if (!record.has_value()) {
    record = prover_.Prove(rule);
    ++proved_now_;
    if (cache_ != nullptr) cache_->Put(rule, *record);
  }
  own_.Put(rule, *record);
  if (record->verdict == ProofRecord::Verdict::kProved) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(VerdictName(record->verdict), ": ", record->note));
}

absl::Status ProverSource::CheckPremises(const ConcreteSide& source, const ConcreteSide& target) {
  std::set<std::string> lemmas;
  return EqualByStructure(source, target, &lemmas);
}

absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, ProofSource* proofs) {
  ISOMER_RETURN_IF_ERROR(CheckPlanFields(plan));
  return CheckCertificate(plan, rules, proofs, {});
}

absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph) {
  ReplayGraph replay(*graph);
  ISOMER_RETURN_IF_ERROR(
      ReplayStep(rule, step, &replay, [](const ConcreteSide& source, const ConcreteSide& target) {
        std::set<std::string> lemmas;
        return EqualByStructure(source, target, &lemmas);
      }));
  ISOMER_ASSIGN_OR_RETURN(*graph, replay.ToGraph());
  return absl::OkStatus();
}

}  // namespace isomer
