// Has rules proved by workers, and repairs those that are refuted.
#ifndef ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_
#define ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_

#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/pipeline/step_keys.h"
#include "generator/preconditions/generalize.h"
#include "generator/workers/work_queue.h"
#include "generator/workers/workers.h"

namespace isomer {

// What a prover says of a rule. The generator is given one; it does not know the verifier.
struct Verdict {
  ProofRecord record;
  std::optional<Binding> counterexample;  // of a refutation
};
using Judge = std::function<Verdict(const Rule& rule)>;

// The step of a worker that proves rules. Sampling can miss a case that needs a condition: what a
// counterexample refutes is settled again with that in view, and then tried with fewer variables,
// so a rule may come back as a stronger one. Verdicts last but for unknown ones, which more time
// may settle.
Step ProofStep(Judge judge);

// Has rules proved while others are still looked for.
class Proofs {
 public:
  Proofs(WorkQueue* queue, const StepKeys* keys) : queue_(queue), keys_(keys) {}

  // Asks the memo or a worker for the proof of a rule that may be one of them.
  void Expect(const GeneralRule& rule) { PlaceOf(rule); }
  // And of another one of them.
  void Begin(const GeneralRule& rule);
  // The rules with their proofs, in the order in which they were begun.
  absl::StatusOr<std::vector<Rule>> Take(std::FILE* progress);

 private:
  WorkQueue* const queue_;
  const StepKeys* const keys_;
  size_t PlaceOf(const GeneralRule& rule);

  std::map<MemoKey, size_t> places_;  // in judged_, by the keys of proofs
  std::deque<std::optional<Rule>> judged_;
  std::vector<size_t> begun_;  // places, in order
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_PROVE_RULES_H_
