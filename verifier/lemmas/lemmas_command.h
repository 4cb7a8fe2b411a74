// isomer-verify lemmas.
#ifndef ISOMER_VERIFIER_LEMMAS_LEMMAS_COMMAND_H_
#define ISOMER_VERIFIER_LEMMAS_LEMMAS_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

struct LemmasOptions {
  int jobs = 1;
  bool exhaustive = false;  // ask the second opinion, too
  std::string markdown;     // receives the page; empty: none
};

// Proves the lemmas that the proofs of `rules` use anew, prints those that fail and how many there
// are. kExitNo if one is not proved, or the second opinion disagrees.
absl::StatusOr<int> LemmasCommand(const RuleSet& rules, const LemmasOptions& options);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_LEMMAS_COMMAND_H_
