// From "these two patterns are equal here" to a rule: for which ranks, and under which conditions?
//
// Settling tries the rule at every rank vector and every value of its axis variables, on random
// shapes, degrees, copies and partials, and keeps what happened: assignments at which the rule
// holds and assignments at which it fails. Rank vectors at which it always fails are dropped. Then
// it looks for the weakest conditions from a fixed vocabulary (axis comparisons, divisibility,
// equal sizes, equal types) that exclude every failure, and tries again on fresh assignments. So
// conditions are found, not written: "d divides the rows" is learned from targets that did not
// type-check without it.
#ifndef ISOMER_GENERATOR_PRECONDITIONS_SETTLE_H_
#define ISOMER_GENERATOR_PRECONDITIONS_SETTLE_H_

#include <optional>
#include <vector>

#include "generator/assignments/sampler.h"
#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

struct SettleOptions {
  // Rank vectors to try; the first is the one at which the rule was found.
  std::vector<std::vector<int>> ranks;
  int samples = 240;  // in all
  // Assignments at which the rule is known to fail: the prover's counterexamples.
  std::vector<Binding> failures;
};

// `rule` has patterns and variables, and conditions that are to be kept (kSplitsDim); ranks are
// ignored. `found` is where it was found: not parallel, all variables bound, degrees 1.
// Nullopt: it fails under every condition of the vocabulary.
std::optional<Rule> Settle(const Rule& rule, const Binding& found, const SettleOptions& options,
                           TypeOracle* oracle, Random* random);

// Settles a refuted rule again, at its own ranks, with the counterexamples that the prover has
// found so far. A reversible rule first loses its inverse.
std::optional<Rule> Resettle(const Rule& rule, const Binding& found,
                             const std::vector<Binding>& counterexamples, TypeOracle* oracle,
                             Random* random);

// Whether the inverse of a settled rule holds under the same conditions.
bool HoldsInversely(const Rule& rule, const Binding& found, TypeOracle* oracle, Random* random);

// Tries a rule on fresh assignments around `found`: types on 4 * `count` of any size, values on
// `count` small ones, drawn `draws` times. False: it failed once, or none was found where there
// must be some.
bool HoldsAround(const Rule& rule, const Binding& found, int count, bool may_be_none,
                 TypeOracle* oracle, Random* random, int draws = 1);

// Bindings under which the rule's source type-checks and its conditions hold, at any of its ranks.
std::vector<Binding> DrawAdmitted(const Rule& rule, const Binding& found, int count,
                                  const SampleOptions& options, TypeOracle* oracle, Random* random);

// Rank vectors worth trying for as many inputs as `ranks` are of: these first, equal ranks 1 to 4,
// these with more dims in front of some of those that have the most (features, next to weights and
// a bias), and one rank mixed with 2 (weights) or 1 (biases).
std::vector<std::vector<int>> RankVectors(const std::vector<int>& ranks);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PRECONDITIONS_SETTLE_H_
