// Counterexamples made as small as they get.
#ifndef ISOMER_VERIFIER_REFUTATION_SHRINK_H_
#define ISOMER_VERIFIER_REFUTATION_SHRINK_H_

#include "rules/language/rule.h"
#include "verifier/refutation/counterexample.h"

namespace isomer {

// A counterexample of the same kind, at an assignment that the rule admits, that no single step
// makes smaller: dropping dims (where the rule has such ranks), or lessening up to three sizes,
// degrees, copies, partials or attributes together; then with as many inputs 0, else 1, as can be.
// Ends after a bounded number of evaluations. REQUIRES: Replay(rule, counterexample) is ok.
Counterexample Shrink(const Rule& rule, const Counterexample& counterexample);

// What a step lessens: of all inputs, the sum of ranks, sizes, degrees, copies, partials and
// micro-batches, and that of the integer variables and attributes.
int64_t Magnitude(const Rule& rule, const Binding& binding);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_REFUTATION_SHRINK_H_
