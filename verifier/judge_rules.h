// Judging whole rule sets, in several processes.
#ifndef ISOMER_VERIFIER_JUDGE_RULES_H_
#define ISOMER_VERIFIER_JUDGE_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rules/rule.h"

namespace isomer {

// Proves every rule, in `jobs` processes (Z3 scales better over processes than over threads), each
// taking the next rule when it is done with one. Records are in the order of the rules.
// `counterexample_dir`, if not empty, receives each refutation's files (SaveCounterexample).
// Errors: a process could not be started or died.
absl::StatusOr<std::vector<ProofRecord>> JudgeRules(const std::vector<Rule>& rules, int jobs,
                                                    const std::string& counterexample_dir = "");

}  // namespace isomer

#endif  // ISOMER_VERIFIER_JUDGE_RULES_H_
