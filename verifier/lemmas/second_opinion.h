// The second opinion on every lemma: exhaustive evaluation (verifier/exhaustive/), which shares no
// code with the proofs.
#ifndef ISOMER_VERIFIER_LEMMAS_SECOND_OPINION_H_
#define ISOMER_VERIFIER_LEMMAS_SECOND_OPINION_H_

#include <vector>

#include "absl/status/status.h"
#include "verifier/lemmas/lemma_list.h"

namespace isomer {

struct OpinionOptions {
  int jobs = 1;
  // Bounds on what is looked at, per operator (points of iteration spaces) and per rule
  // (instances). What they cut is spread over the whole.
  int64_t points = 300000;
  int rule_instances = 12;
};

// Sets `opinion` of every lemma but definitions: at all shapes of dims, ranks and degrees up to 4
// and kernels up to 3, as far as the bounds go.
//   pieces, linearity    CheckOperator
//   structure, elements  both sides of every rule that uses the lemma, at small assignments
// Errors: a process could not be started or died.
absl::Status AskSecondOpinion(const OpinionOptions& options, std::vector<LemmaEntry>* lemmas);

// Both sides of a rule at representative and at small assignments, at most `most`.
Tally CompareRule(const Rule& rule, int most);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_SECOND_OPINION_H_
