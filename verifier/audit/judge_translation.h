// The verdict on a translated rule: proved, and under which conditions; or why not.
#ifndef ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_
#define ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_

#include <optional>
#include <string>
#include <vector>

#include "verifier/audit/translate.h"
#include "verifier/prover.h"

namespace isomer {

struct TranslationVerdict {
  enum class Kind { kProved, kRefuted, kSourceIllTyped, kTargetIllTyped, kUnknown };
  Kind kind = Kind::kUnknown;
  Rule rule;                          // with the conditions it was judged under
  std::vector<Condition> conditions;  // that restrict the foreign rule: no fewer were found to do
  bool complete = false;              // kProved: every lemma is proved, none only checked
  std::string reason;                 // otherwise
  std::optional<Counterexample> counterexample;  // kRefuted
};

// Judges the rule as it stands; if that fails, under more and more conditions (that nothing is
// broadcast; that degrees divide; no partial sums; equal types; no partitioning), of which those
// that the proof can do without are dropped again.
TranslationVerdict JudgeTranslation(const Translation& translation, Prover* prover);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_
