// The verdict on a translated rule: proved, and under which conditions; or why not.
#ifndef ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_
#define ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_

#include <optional>
#include <string>
#include <vector>

#include "verifier/audit/translate.h"
#include "verifier/proving/prover.h"

namespace isomer {

struct TranslationVerdict {
  enum class Kind { kProved, kRefuted, kSourceIllTyped, kTargetIllTyped, kUnknown };
  Kind kind = Kind::kUnknown;
  Rule rule;                          // with the conditions it was judged under
  std::vector<Condition> conditions;  // that restrict the foreign rule: no fewer were found to do
  bool complete = false;              // kProved: every lemma is proved, none only checked
  bool whole_only = false;            // kProved: for tensors that are not parallel
  std::string reason;                 // otherwise
  std::optional<Counterexample> counterexample;  // kRefuted
};

// Judges the rule as it stands; if that fails, under more and more conditions (strengthenings.h),
// of which those that the proof can do without are dropped again. Instances that the format does
// not have refute nothing: both have floats alone, and TASO no parallel tensors.
TranslationVerdict JudgeTranslation(const Translation& translation, ForeignFormat format,
                                    Prover* prover);

// The same of tensors that are not parallel alone.
TranslationVerdict JudgeOfWhole(const Translation& translation, Prover* prover);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_JUDGE_TRANSLATION_H_
