// Where functions are defined, and that a rule keeps to it.
//
// log, sqrt, quotients and powers are partial functions. Two sides that are equal wherever both are
// defined may still differ: log(embedding(w, i)) takes the logarithm of the rows that are looked
// up, embedding(log(w), i) of all rows, and one row of zeros makes its gradient NaN. So a rule may
// apply a partial function in its target only to arguments of which the source shows that they lie
// in the domain: those that the source applies it to, elements of these, and what is positive
// whatever the inputs hold. Then: where all inputs are finite and the source and its gradients are,
// so are the target and its gradients. (The domains are open, so that gradients are finite within
// them, but for that of sqrt, which is defined at 0 without a gradient, in the source as in the
// target.)
//
// This is decided of calls, not of values: 0 * log(x) applies log, whatever it is multiplied by. Of
// the source's calls only those count that it needs (needed_operands.h): where(c, log(x), y) is
// finite where log(x) is not, and c does not choose it. What it may drop the target may have where
// it is dropped alike.
// docs/proof.md states what is shown and proves it.
#ifndef ISOMER_RULES_THEOREMS_DOMAINS_H_
#define ISOMER_RULES_THEOREMS_DOMAINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/declaration.h"
#include "rules/language/rule.h"

namespace isomer {

enum class Sign { kPositive, kNonnegative, kUnknown };

// What is known of the values of output `output`, where those of the operands have these signs.
Sign SignOfOutput(const Declaration& d, int output, const std::vector<Sign>& operands);

// That a call applies a partial function to something of which its declaration does not show that
// it lies in the domain.
struct PartialFunction {
  enum class Domain {
    kNonzero,      // the argument is an element of operands[0], and may not be zero
    kPositive,     // .. and must be above zero
    kNonnegative,  // .. and may not be below zero
    kOfOperator,   // what the operator says of elements of `operands` that lie at one place
    kUnclear,      // all that the operator says of all its operands
  };
  Domain domain = Domain::kUnclear;
  std::vector<int> operands;
  // Whether every element of the operands is an argument.
  bool of_all_elements = false;
};
std::vector<PartialFunction> PartialFunctionsOf(const Declaration& d);

// False if no call of the operator is known that applies a partial function outside of its domain,
// whatever numbers (epsilons, rates) its attributes have.
bool MayBePartial(OpKind kind);

// A call of a side. Parallel operators are identities.
struct CallWithDomain {
  OpKind kind;
  // Equal texts: the same operator with the same attributes.
  std::string op;
  std::vector<PatternRef> inputs;
  // Null where attributes are variables: then nothing is known but that equal calls are equal.
  const Declaration* declaration = nullptr;
};

struct SideWithDomains {
  std::vector<CallWithDomain> calls;
  std::vector<PatternRef> outputs;
};

// Ok if the target is defined where the source is, and has finite gradients where the source has.
// The error names the first call of the target of which that is not shown; it refutes nothing.
absl::Status DefinedWhereSourceIs(const SideWithDomains& source, const SideWithDomains& target);

// The same by the patterns alone: every partial function of the target is applied in the source to
// the same tensors, parallel operators left out.
absl::Status DefinedWhereSourceIs(const Pattern& source, const Pattern& target);

// Ok if both sides apply the same casts to the same tensors, parallel operators left out. A cast
// may round, and integers that are too large become others, so that over the reals it is no
// identity: what else is done to casts is a matter of theorems that move them (structure.h).
absl::Status CastsAreTheSame(absl::Span<const CallWithDomain> source,
                             absl::Span<const CallWithDomain> target);
absl::Status CastsAreTheSame(const Pattern& source, const Pattern& target);

}  // namespace isomer

#endif  // ISOMER_RULES_THEOREMS_DOMAINS_H_
