// From candidates to rules: each candidate in turn is pruned by what the rules before it say, or
// generalised to a rule of its own.
#ifndef ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_
#define ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "generator/assignments/statistics.h"
#include "generator/pipeline/memo.h"
#include "generator/pipeline/step_keys.h"
#include "generator/preconditions/generalize.h"
#include "generator/preconditions/prune.h"

namespace isomer {

struct SettleRun {
  uint64_t seed = 1;
  int jobs = 1;               // threads
  int composition_steps = 1;  // see Derivations
  const StepKeys* keys = nullptr;
  Memo* memo = nullptr;
};

// Rules that were accepted, each once, and what they say together.
class AcceptedRules {
 public:
  // False: it is there already.
  bool Add(const GeneralRule& rule);
  const std::vector<GeneralRule>& rules() const { return rules_; }
  const RuleBook& book() const { return book_; }

 private:
  RuleBook book_;
  absl::flat_hash_set<uint64_t> digests_;
  std::vector<GeneralRule> rules_;
};

// Decides about every candidate in turn and adds the rules that they give. A candidate is decided
// on by the rules of all before it; its derivation and generalisation are worked on ahead of its
// turn, in threads, so the outcome is that of one thread. `progress`: another one is done.
//
// What a candidate generalises to is kept in the memo; so are the decisions of each run of
// candidates, under a key that holds all that came before.
void SettleCandidates(const std::vector<Candidate>& candidates, const SettleRun& run,
                      AcceptedRules* accepted, Statistics* statistics,
                      absl::FunctionRef<void()> progress);

// Operators of both sides, shared ones counted at each use.
int SizeOf(const Candidate& candidate);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_
