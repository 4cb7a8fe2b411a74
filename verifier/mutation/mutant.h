// Mutants: small changes of what is true, and what becomes of them.
//
// A verifier is trusted as far as it refuses what is false. Mutants of declarations, rules, plans,
// schedules and programs are given to whoever must refuse them; an engine of another kind, mostly
// the reference evaluator, says which of them change a meaning.
#ifndef ISOMER_VERIFIER_MUTATION_MUTANT_H_
#define ISOMER_VERIFIER_MUTATION_MUTANT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "verifier/proving/prover.h"

namespace isomer {

enum class MutantKind { kDeclaration, kRule, kPlan, kSchedule, kProgram };
inline constexpr int kMutantKinds = 5;
const char* MutantKindName(MutantKind kind);

struct MutantVerdict {
  enum class Outcome {
    kCaught,     // changes the meaning, and is refused
    kUndecided,  // is refused: no proof was found, and no difference either
    kEqual,      // is accepted, and means the same
    kMissed,     // changes the meaning, and is accepted
  };
  Outcome outcome = Outcome::kMissed;
  // Who refused it; the reason it is equal; what differs and nobody saw. A word or two that
  // verdicts are counted by, then details.
  std::string reason, details;
};

struct Mutant {
  MutantKind kind = MutantKind::kRule;
  std::string subject;  // what was changed: "rule r0123456789ab", "MaxPool1d"
  std::string change;   // "operands 0 and 1 of node 2 exchanged"
  // Deterministic, whatever the prover was used for before.
  std::function<MutantVerdict(Prover*)> judge;
};

inline MutantVerdict Caught(std::string by, std::string details = "") {
  return {MutantVerdict::Outcome::kCaught, std::move(by), std::move(details)};
}
inline MutantVerdict Undecided(std::string by, std::string details = "") {
  return {MutantVerdict::Outcome::kUndecided, std::move(by), std::move(details)};
}
inline MutantVerdict Equal(std::string reason, std::string details = "") {
  return {MutantVerdict::Outcome::kEqual, std::move(reason), std::move(details)};
}
inline MutantVerdict Missed(std::string what, std::string details = "") {
  return {MutantVerdict::Outcome::kMissed, std::move(what), std::move(details)};
}

}  // namespace isomer

#endif  // ISOMER_VERIFIER_MUTATION_MUTANT_H_
