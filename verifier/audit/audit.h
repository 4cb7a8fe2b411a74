// The audit of a file of rules that others published: a verdict on each.
#ifndef ISOMER_VERIFIER_AUDIT_AUDIT_H_
#define ISOMER_VERIFIER_AUDIT_AUDIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rules/language/rule.h"
#include "verifier/audit/derivable.h"
#include "verifier/audit/foreign_rule.h"

namespace isomer {

enum class AuditVerdict {
  kProved,    // for every well-typed instance, or under `conditions`
  kChecked,   // the same, but that values agree was evaluated at representative calls, not proved
  kRefuted,   // a counterexample shows it
  kIllTyped,  // a side is never well typed
  kUnknown,   // neither proved nor refuted
  kOutside,   // an operator that we do not have
};
inline constexpr int kNumAuditVerdicts = 6;
absl::string_view AuditVerdictName(AuditVerdict verdict);
inline bool IsTrue(AuditVerdict verdict) {
  return verdict == AuditVerdict::kProved || verdict == AuditVerdict::kChecked;
}

enum class RuleOrigin {
  kNotSought,  // the rule is not proved, or no rules were given
  kDerivable,  // our rules lead from one side to the other
  kNew,        // they were not found to, within the limits
};
absl::string_view RuleOriginName(RuleOrigin origin);

struct AuditResult {
  AuditVerdict verdict = AuditVerdict::kUnknown;
  std::string reason;                   // kProved, kChecked: empty; kRefuted: the counterexample
  std::vector<std::string> conditions;  // the same: under which it holds; empty: always
  // What our rule must say besides, for what the format has not: operands that broadcast, and, of
  // TASO's rules, tensors that are partitioned or partial sums.
  std::vector<std::string> here_also;
  std::string equation;  // as a rule of ours; empty if it is none
  RuleOrigin origin = RuleOrigin::kNotSought;
  bool values_differ = false;  // kRefuted: not in types alone
  bool as_arrays = false;      // judged with the replica dim as a dim of arrays (Reading::arrays)
  std::vector<std::string> steps;  // kDerivable: ids of rules
  bool by_saturation = false;  // kDerivable: `steps` is the rules that equality saturation needs
  double seconds = 0;
};

struct AuditOptions {
  ForeignFormat format = ForeignFormat::kTaso;
  int jobs = 1;
  std::string counterexample_dir;  // "": refutations are not written
  const RuleSet* rules = nullptr;  // what rules are to be derived from; null: none
  DerivationLimits derivation;
};

// Judges one rule.
class Prover;
AuditResult AuditRule(const ForeignRule& rule, const AuditOptions& options, Prover* prover);

// Judges all, in `jobs` processes; results are in the order of the rules.
absl::StatusOr<std::vector<AuditResult>> AuditRules(const std::vector<ForeignRule>& rules,
                                                    const AuditOptions& options);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_AUDIT_H_
