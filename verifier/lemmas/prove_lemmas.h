// Proofs of lemmas, made anew.
#ifndef ISOMER_VERIFIER_LEMMAS_PROVE_LEMMAS_H_
#define ISOMER_VERIFIER_LEMMAS_PROVE_LEMMAS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "verifier/lemmas/lemma_list.h"

namespace isomer {

// Sets `proof` of every lemma:
//   pieces,      by the theorems of structure.h, the premise of which is decided at the example
//   linearity    calls, the representative ones, and small calls of every rank;
//   structure,   by proving every rule that uses the lemma again: its record must name the lemma.
//   elements
// Errors: a process could not be started or died.
absl::Status ProveLemmas(int jobs, std::vector<LemmaEntry>* lemmas);

// The calls of an operator at which the premise of a lemma on pieces or linearity is decided.
struct PremiseCount {
  int holds = 0, calls = 0;
};
PremiseCount DecidePremise(const std::string& lemma_id, OpKind kind);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_LEMMAS_PROVE_LEMMAS_H_
