// Proofs and refutations of a rule on the instances that a foreign format has.
#ifndef ISOMER_VERIFIER_AUDIT_FORMAT_PROOF_H_
#define ISOMER_VERIFIER_AUDIT_FORMAT_PROOF_H_

#include <optional>
#include <string>
#include <vector>

#include "rules/language/rule.h"
#include "verifier/proving/value_proof.h"
#include "verifier/refutation/counterexample.h"

namespace isomer {

bool IsOfFloats(const Binding& binding);
// No input is parallel.
bool IsWhole(const Binding& binding);

// Whether the rule is proved where all inputs are floats: degrees, copies and partials for all
// sizes, and values. `lemmas`: those used.
bool ProvedForFloats(const Rule& rule, ValueProver* values, std::vector<std::string>* lemmas);

// Whether it is proved where besides no input is parallel: there a call has a type if it has a
// shape. False for rules with operators that need definite sizes.
bool ProvedForWhole(const Rule& rule, ValueProver* values, std::vector<std::string>* lemmas);

// Floats that are not parallel at which the two sides differ, of a few small ones that are tried.
std::optional<Counterexample> RefutedForWhole(const Rule& rule);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_FORMAT_PROOF_H_
