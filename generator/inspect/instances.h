// How many rules of fixed degree and axes a rule says: what a generator would have counted that
// does not generalise.
//
// An *instance at degree 2* of a rule is its two patterns at one of its rank vectors, of ranks up
// to 4 (any, if it has none so low), with every variable replaced by a constant:
//   degrees      2, all of them;
//   axes         every choice, each counted;
//   numbers      one choice: 2, 3, 5, .., or what an example call has;
//   attributes   as in each example call of the operator (sample_calls.h), each counted;
//   sizes        any that fit; they are no part of the instance.
// It counts only if there are inputs, of sizes that 2 divides and themselves partitioned,
// replicated or partial (bools excepted) by 1 or 2 in every dim, at which the source type-checks
// and the conditions hold, and if such inputs are found in a fixed number of draws: so the count is
// a lower bound. Instances of all rules are told apart by the canonical form of their patterns,
// operands of commutative operators and names of inputs in any order: what two rules say is counted
// once, and so are the two directions of a reversible rule. Types of inputs but for their ranks are
// no part of an instance.
#ifndef ISOMER_GENERATOR_INSPECT_INSTANCES_H_
#define ISOMER_GENERATOR_INSPECT_INSTANCES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "generator/assignments/type_oracle.h"
#include "rules/language/rule.h"

namespace isomer {

struct Instance {
  uint64_t hash = 0;                // of the canonical form, from source to target
  std::optional<uint64_t> inverse;  // from target to source, if the rule is reversible
};
// All of a rule; some may be equal.
std::vector<Instance> InstancesOf(const Rule& rule, TypeOracle* oracle);
// Of each rule, found in threads.
std::vector<std::vector<Instance>> InstancesOf(const std::vector<Rule>& rules);

class InstanceCounter {
 public:
  // How many of `instances` are not among those added before.
  int64_t Add(const std::vector<Instance>& instances);

 private:
  absl::flat_hash_set<uint64_t> known_;
};

// Assignments, one for each instance of `rule` at degree 2, its inputs' sizes multiples of `size`
// where no example call gives them. Pieces of pieces need 4; 8 leaves a factor that no degree
// explains.
std::vector<Binding> InstancesAtDegreeTwo(const Rule& rule, TypeOracle* oracle, int64_t size = 8);

// Equal for pairs of patterns that are one instance, in the direction from source to target;
// nullopt if an attribute cannot be read off the binding.
std::optional<uint64_t> InstanceHash(const Rule& rule, const Binding& binding, TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_INSTANCES_H_
