// Runs mutants and reports what became of them.
#ifndef ISOMER_VERIFIER_MUTATION_MUTATION_H_
#define ISOMER_VERIFIER_MUTATION_MUTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/support/json.h"
#include "rules/language/rule.h"
#include "verifier/mutation/mutant.h"

namespace isomer {

struct MutationOptions {
  int rule_mutants = 500;
  // Of each other kind, at most so many, spread evenly; 0: all.
  int limit = 0;
  uint64_t seed = 1;
  int jobs = 1;
};

// The mutants of all kinds.
absl::StatusOr<std::vector<Mutant>> AllMutants(const RuleSet& rules,
                                               const MutationOptions& options);

// One verdict for each, in order, found in `jobs` processes. Errors: a process died, which names
// the mutant; the prover aborts where a proof contradicts evaluation.
absl::StatusOr<std::vector<MutantVerdict>> JudgeMutants(const std::vector<Mutant>& mutants,
                                                        int jobs);

// A table by kind, the reasons and their numbers, every mutant that is missed; with `all_equal`,
// every one that is equal, with its reason.
std::string MutationText(const std::vector<Mutant>& mutants,
                         const std::vector<MutantVerdict>& verdicts, bool all_equal);
// The same as Markdown, of which docs/mutation.md is made.
std::string MutationMarkdown(const std::vector<Mutant>& mutants,
                             const std::vector<MutantVerdict>& verdicts);
Json MutationJson(const std::vector<Mutant>& mutants, const std::vector<MutantVerdict>& verdicts);
bool NothingIsMissed(const std::vector<MutantVerdict>& verdicts);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_MUTATION_H_
