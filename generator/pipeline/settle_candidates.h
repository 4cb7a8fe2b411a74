// From candidates to rules: each candidate in turn is pruned by what the rules before it say, or
// generalised to a rule of its own.
#ifndef ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_
#define ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "generator/assignments/statistics.h"
#include "generator/pipeline/step_keys.h"
#include "generator/preconditions/generalize.h"
#include "generator/preconditions/prune.h"
#include "generator/workers/work_queue.h"

namespace isomer {

struct SettleRun {
  int composition_steps = 1;  // see Derivations
  const StepKeys* keys = nullptr;
  WorkQueue* queue = nullptr;
};

// Rules that were accepted, each once, and what they say together.
class AcceptedRules {
 public:
  // `on_rule` is called with each.
  explicit AcceptedRules(std::function<void(const GeneralRule&)> on_rule)
      : on_rule_(std::move(on_rule)) {}
  // False: it is there already.
  bool Add(const GeneralRule& rule);
  const std::vector<GeneralRule>& rules() const { return rules_; }
  const RuleBook& book() const { return book_; }

 private:
  const std::function<void(const GeneralRule&)> on_rule_;
  RuleBook book_;
  absl::flat_hash_set<uint64_t> digests_;
  std::vector<GeneralRule> rules_;
};

// Decides about every candidate in turn and adds the rules that they give. A candidate is decided
// on by the rules of all before it; its derivation and generalisation are worked on ahead of its
// turn, by workers that know the rules so far, so the outcome is that of one worker. `progress`:
// another one is done. Errors: those of workers.
//
// What a candidate generalises to is kept in the memo; so are the decisions of each run of
// candidates, under a key that holds all that came before.
absl::Status SettleCandidates(const std::vector<Candidate>& candidates, const SettleRun& run,
                              AcceptedRules* accepted, Statistics* statistics,
                              absl::FunctionRef<void()> progress);

// Operators of both sides, shared ones counted at each use.
int SizeOf(const Candidate& candidate);
// Its name without the types: a pair that did not generalise does not do so at other types of its
// ranks.
std::string FormOf(const Candidate& candidate);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_SETTLE_CANDIDATES_H_
