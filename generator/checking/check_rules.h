// Numeric checks of finished rules: evidence that neither the generator nor the prover gave.
//
// A rule is tried at random assignments that it admits (ranks, shapes, axes, degrees, copies,
// partials, attributes), which are not those that it was found with. Both sides are run shard by
// shard (sharded.h): forward over the prime field, where they must agree exactly, and in double;
// and backward in double, from random gradients of the outputs, where the gradient of every float
// input must agree: of every partial, summed over the copies, each of which holds a share.
//
// Numbers are redrawn, positive, where the source leaves the reals (the logarithm of a negative
// number). Kinks (relu at 0, ties of a maximum) have probability zero under the random numbers.
// Functions without a gradient (floor, sign, comparisons) have the gradient zero on both sides; a
// rule all of whose gradients are zero says so, as does a rule without float inputs or outputs.
#ifndef ISOMER_GENERATOR_CHECKING_CHECK_RULES_H_
#define ISOMER_GENERATOR_CHECKING_CHECK_RULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "generator/assignments/type_oracle.h"
#include "generator/checking/sharded.h"
#include "rules/language/rule.h"

namespace isomer {

struct CheckOptions {
  int instances = 1000;
  uint64_t seed = 1;
  int jobs = 1;
  // Largest differences, relative to the largest element of an output or of a gradient.
  double forward_tolerance = 1e-9;
  double gradient_tolerance = 1e-7;
};

struct RuleCheck {
  std::string id;
  int instances = 0;      // evaluated
  int distinct = 0;       // of these, different assignments
  int without_value = 0;  // look-ups outside of their tables, and functions outside of the reals
  double forward = 0, gradient = 0;  // largest relative differences in double
  enum class Gradient { kNone, kZero, kChecked };
  Gradient gradients = Gradient::kNone;
  std::string failure;           // what disagrees and where; empty: nothing
  std::string ToString() const;  // one line
};

// Assignments that the rule admits, at most `count`, of few elements and shards; some twice, if it
// admits few.
std::vector<Binding> DrawInstances(const Rule& rule, int count, uint64_t seed, TypeOracle* oracle);

// Stops at the first instance that fails.
RuleCheck CheckRule(const Rule& rule, const CheckOptions& options, TypeOracle* oracle,
                    ShardedCalls* calls);

// Every rule, and the inverses of reversible ones, in order. `done` is called after each.
std::vector<RuleCheck> CheckRules(const std::vector<Rule>& rules, const CheckOptions& options,
                                  absl::FunctionRef<void()> done);

// How the two sides differ at one binding.
struct Differences {
  bool exact = true;  // over the field, wherever both are defined
  double forward = 0, gradient = 0;
  bool has_gradient = false, zero_gradient = true;
  bool has_value = true;  // false: the source has none at these numbers
};
// Errors: a side does not type-check, the types of outputs differ, or the target has no value where
// the source has one.
absl::StatusOr<Differences> Compare(const Rule& rule, const Binding& binding, uint64_t seed,
                                    ShardedCalls* calls);

// "x0 f32[4:2,4] x1 f32[4,6] d=2 i0=-1"
std::string BindingText(const Binding& binding);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_CHECKING_CHECK_RULES_H_
