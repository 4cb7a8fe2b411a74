// Counterexamples: assignments at which the two sides of a rule differ, found by running them.
#ifndef ISOMER_VERIFIER_REFUTATION_COUNTEREXAMPLE_H_
#define ISOMER_VERIFIER_REFUTATION_COUNTEREXAMPLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

// The rule's source type-checks under `binding` and the target does not, or has other output types,
// or computes other values from `inputs`, or values or gradients that are not finite where the
// source's are.
struct Counterexample {
  enum class Kind { kTargetIllTyped, kOutputTypes, kValues, kUndefined };
  Kind kind = Kind::kValues;
  Binding binding;
  // Per rule input and partial, in row-major order; integers of small magnitude, so that every
  // number type computes with them. Empty unless kind is kValues or kUndefined.
  std::vector<std::vector<std::vector<double>>> inputs;
  std::string difference;  // one line: what differs
  // One line: types of the inputs, variables, the difference.
  std::string Summary() const;
  // The two sides as graphs in text form, and the values of the inputs.
  std::string ToString(const Rule& rule) const;
};

// Evaluates both sides of `rule` at `binding`, in doubles, on inputs drawn from `seed`. Returns the
// difference, or nullopt if there is none.
// Errors: the conditions or the source's types do not admit the binding.
absl::StatusOr<std::optional<Counterexample>> TryBinding(const Rule& rule, const Binding& binding,
                                                         uint64_t seed);

// The same on inputs that are far below or above each other: which of two maxima is the larger does
// not depend on a few elements then.
absl::StatusOr<std::optional<Counterexample>> TryApart(const Rule& rule, const Binding& binding,
                                                       uint64_t seed);

// TryBinding on inputs among which are zeros and negative numbers, and with gradients: a target
// that is not finite where the source and its gradients are is a difference.
absl::StatusOr<std::optional<Counterexample>> TryAtEdges(const Rule& rule, const Binding& binding,
                                                         uint64_t seed);

// TryBinding on given inputs, laid out as Counterexample's.
absl::StatusOr<std::optional<Counterexample>> TryInputs(
    const Rule& rule, const Binding& binding,
    const std::vector<std::vector<std::vector<double>>>& inputs);

// Evaluates both sides in a prime field, in which nothing but the declared identities holds: what
// is proved is equal there too, exactly, where no divisor is zero. An internal error says what
// differs.
absl::Status ExpectEqualInField(const Rule& rule, const Binding& binding, uint64_t seed);

// Runs both sides again: ok if `counterexample` still shows a difference.
absl::Status Replay(const Rule& rule, const Counterexample& counterexample);

// Writes <stem>.source.txt and <stem>.target.txt (if the target type-checks): model files whose
// weights are the inputs' meanings, and <stem>.txt, the same for people.
absl::Status SaveCounterexample(const std::string& stem, const Rule& rule,
                                const Counterexample& counterexample);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_REFUTATION_COUNTEREXAMPLE_H_
