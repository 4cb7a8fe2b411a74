// Judging whole rule sets, in several processes.
#ifndef ISOMER_VERIFIER_PROVING_JUDGE_RULES_H_
#define ISOMER_VERIFIER_PROVING_JUDGE_RULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/support/process_pool.h"
#include "rules/language/rule.h"
#include "verifier/proving/proof_cache.h"

namespace isomer {

struct JudgeOptions {
  int jobs = 1;  // processes: Z3 scales better over processes than over threads
  // If not empty, receives each refutation's files (SaveCounterexample).
  std::string counterexample_dir;
  // If not null, verdicts are looked up there and new ones are put there, and saved from time to
  // time.
  ProofCache* cache = nullptr;
  // The slowest of the shipped rules takes under a second, and all of them half a gigabyte.
  Isolation isolation = {.seconds_per_item = 60, .bytes = int64_t{4} << 30};
};

struct JudgedRules {
  std::vector<ProofRecord> records;  // in the order of the rules
  int from_cache = 0;
  absl::Status cache_status;  // of saving
};

// Proves every rule, each process taking the next rule when it is done with one. Counterexamples
// are shrunk (shrink.h). A rule at which a process dies, or takes longer than it may, is kCrashed.
// Errors: a process could not be started.
absl::StatusOr<JudgedRules> JudgeRules(const std::vector<Rule>& rules, const JudgeOptions& options);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PROVING_JUDGE_RULES_H_
