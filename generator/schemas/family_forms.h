// From a spread of a call to rules: on which side each parallel operator stands.
//
// A spread makes two calls equal: the whole call, and the spread call on pieces, copies and partial
// sums. A rule has one of them as its source and the other as its target. Where the two hold a
// tensor differently, a parallel operator on one of the sides makes up for it, and it may often
// stand on either: what is Partition(x) for the target is Combine(x) for the source. So from
//     op(x0, x1) -> combine(op(partition(x0), replicate(x1)))
// come, with operators moved over,
//     op(combine(x0), x1) -> combine(op(x0, replicate(x1)))
//     partition(op(x0, x1)) -> op(partition(x0), replicate(x1))
// and the ways back, from the spread call to the whole one.
#ifndef ISOMER_GENERATOR_SCHEMAS_FAMILY_FORMS_H_
#define ISOMER_GENERATOR_SCHEMAS_FAMILY_FORMS_H_

#include <vector>

#include "generator/assignments/call_attributes.h"
#include "generator/assignments/spread.h"

namespace isomer {

// A call with its attributes as variables, bound to what they and its operands are. `pinned`:
// attributes that are integers or numbers, but for axes, stay as they are.
struct CallPattern : CallAttributes {
  OpKind kind;
};
CallPattern PatternOfCall(const OperatorCall& call, bool pinned);

// One choice of sides.
struct SpreadForm {
  bool back = false;                // the source is the spread call
  std::vector<bool> operand_moved;  // per operand: its operator undoes the share, on the other side
  std::vector<int> outputs;         // those of the call that the rule has
  std::vector<bool> output_moved;   // per output of the rule
};

// The forms of a spread, the expansion (nothing moved) first. Sources have at most this many
// operators, like those of enumerated rules, but for the way back from the expansion.
inline constexpr int kMostSourceOperators = 3;
std::vector<SpreadForm> FormsOf(const CallSpread& spread);

// The rule, without ranks. Axes are variables i0, i1, .. of the operands and j0, .. of the outputs,
// tied by kSplitsDim.
Rule RuleOfForm(const CallPattern& call, const CallSpread& spread, const SpreadForm& form);

// The values of those variables, and of the degree, at the spread as it was found.
void BindForm(const CallSpread& spread, Binding* binding);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_FAMILY_FORMS_H_
