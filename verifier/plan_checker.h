// Checks a plan's certificate (certificate/certificate.h) with the prover at hand.
#ifndef ISOMER_VERIFIER_PLAN_CHECKER_H_
#define ISOMER_VERIFIER_PLAN_CHECKER_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "pcg/plan.h"
#include "rules/rule.h"
#include "verifier/certificate/certificate.h"
#include "verifier/proof_cache.h"
#include "verifier/prover.h"

namespace isomer {

// Answers the checker's questions: premises by structure.h, rules by a prover of its own, or by
// what it proved before. Verdicts are found by all that a rule says, never by what a file says of
// it.
class ProverSource : public ProofSource {
 public:
  // `cache`: verdicts of earlier runs of this prover; null: none. It must outlive the source, and
  // is given the new ones.
  explicit ProverSource(ProofCache* cache = nullptr) : cache_(cache) {}
  absl::Status Prove(const Rule& rule) override;
  absl::Status CheckPremises(const ConcreteSide& source, const ConcreteSide& target) override;

  int proved_now() const { return proved_now_; }
  int from_cache() const { return from_cache_; }

 private:
  Prover prover_;
  ProofCache* const cache_;
  ProofCache own_{"", ""};  // of this source
  int proved_now_ = 0, from_cache_ = 0;
};

// CheckPlanFields and CheckCertificate, the schedule of all devices included.
absl::Status CheckPlan(const Plan& plan, const RuleSet& rules, ProofSource* proofs);

// One step alone, on a graph that need not be a model's.
absl::Status ReplayStep(const Rule& rule, const DerivationStep& step, Graph* graph);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PLAN_CHECKER_H_
