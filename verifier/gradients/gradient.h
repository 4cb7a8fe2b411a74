// The gradient theorem of a rule: for each trainable input, both sides have equal gradients.
//
// The value theorem says that both sides compute one function F of the inputs' meanings. What
// training runs is each side's gradient graph: its operators in reverse, each replaced by its
// gradient. That both gradient graphs compute the transposed derivative of F follows from premises
// on single operators, which are proved here; docs/gradients.md has the argument.
//
//   duals     For a parallel operator y = P(x), the gradient goes through P's dual, which makes of
//             every tensor of the type of y's gradient one of the type of x's, with the same
//             meaning: the types for all degrees, copies and partials, the meanings by definition,
//             and besides by evaluation of both against reverse mode.
//   pieces    A declared operator's tasks make pieces and partial sums of its outputs (theorems of
//             structure.h, on which its types rest), so their gradients are shares of the whole's.
//   scalars   Every scalar function of a declaration is differentiable where it is defined, or
//             takes apart what it is defined on into pieces on which it is, and reverse mode takes
//             the derivative of a piece: at a tie of a maximum that of one operand. Then gradients
//             are right but on a set of measure zero (Lee, Yu, Rival, Yang: On Correctness of
//             Automatic Differentiation for Non-Differentiable Functions, NeurIPS 2020).
#ifndef ISOMER_VERIFIER_GRADIENTS_GRADIENT_H_
#define ISOMER_VERIFIER_GRADIENTS_GRADIENT_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/operator.h"
#include "rules/language/rule.h"

namespace isomer {

// The operators that the gradient of a parallel operator goes through, first to last. None: it is
// passed on as it is.
using Duals = std::function<std::vector<Operator>(const Operator& op)>;
// DualOf, as the schedule has it.
std::vector<Operator> DualsOf(const Operator& op);

enum class GradientReach {
  kNone,              // no float input or output: nothing to differentiate
  kEverywhere,        // wherever the source is defined
  kAlmostEverywhere,  // but on a set of measure zero
};

struct GradientTheorem {
  absl::Status status;  // the premise that is not proved
  GradientReach reach = GradientReach::kNone;
  std::set<std::string> lemmas;  // "replicate_gradient_is_reduce"
};

// Keeps what it has proved of operators.
class GradientProver {
 public:
  explicit GradientProver(Duals duals = DualsOf) : duals_(std::move(duals)) {}

  // REQUIRES: the rule is proved.
  GradientTheorem Prove(const Rule& rule);

 private:
  struct Dual {
    absl::Status status;
    std::string lemma;
  };
  const Dual& DualOfKind(OpKind kind);

  const Duals duals_;
  std::map<OpKind, Dual> known_;
};

// What reverse mode finds of the operators' declarations: kEverywhere if every scalar function is
// differentiable. Errors: a function that is no such thing, pseudo-random numbers of floats.
absl::StatusOr<GradientReach> ReachOfKind(OpKind kind);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_GRADIENTS_GRADIENT_H_
