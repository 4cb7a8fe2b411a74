// Has rules proved, in several processes, and repairs those that are refuted.
#ifndef ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_
#define ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_

#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/pipeline/memo.h"
#include "generator/pipeline/step_keys.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// What a prover says of a rule. The generator is given one; it does not know the verifier.
struct Verdict {
  ProofRecord record;
  std::optional<Binding> counterexample;  // of a refutation
};
using Judge = std::function<Verdict(const Rule& rule)>;

struct ProveOptions {
  int jobs = 1;  // processes
  const StepKeys* keys = nullptr;
  Memo* memo = nullptr;
  std::FILE* progress = nullptr;
};

// The rules with their proofs, in order. Sampling can miss a case that needs a condition: what a
// counterexample refutes is settled again with that in view, and then tried with fewer variables,
// so a rule may come back as a stronger one. `make_judge` is called once per process.
// Verdicts of earlier runs are taken from the memo; new ones are put there as they come, but for
// unknown ones, which more time may settle. Errors: a process died.
absl::StatusOr<std::vector<Rule>> ProveRules(const std::vector<GeneralRule>& rules,
                                             const std::function<Judge()>& make_judge,
                                             const ProveOptions& options);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_
