// Checks a plan's certificate (certificate/certificate.h) with the prover at hand.
#ifndef ISOMER_VERIFIER_PLAN_CHECKER_H_
#define ISOMER_VERIFIER_PLAN_CHECKER_H_

#include "absl/status/status.h"
#include "pcg/plan.h"
#include "rules/rule.h"
#include "verifier/certificate/certificate.h"
#include "verifier/prover.h"

namespace isomer {

// Answers the checker's questions: premises by structure.h, rules by `prover`.
class ProverSource : public ProofSource {
 public:
  explicit ProverSource(Prover* prover) : prover_(prover) {}
  absl::Status Prove(const Rule& rule) override;
  absl::Status CheckPremises(const ConcreteSide& source, const ConcreteSide& target) override;

 private:
  Prover* const prover_;
};

// CheckCertificate, schedule included; with `reprove` every rule is proved again.
absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, Prover* reprove = nullptr);

// One step alone, on a graph that need not be a model's.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLAN_CHECKER_H_
