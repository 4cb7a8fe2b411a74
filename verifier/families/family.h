// What a family rule looks like: one call on both sides, and at most one parallel operator on every
// operand and output of it.
#ifndef ISOMER_VERIFIER_FAMILIES_FAMILY_H_
#define ISOMER_VERIFIER_FAMILIES_FAMILY_H_

#include <optional>
#include <string>
#include <vector>

#include "rules/language/rule.h"

namespace isomer {

// One side: outputs(call(operands(x0), operands(x1), ..)).
struct FamilySide {
  int node = -1;                             // of the call
  std::vector<const PatternNode*> operands;  // the parallel operator on each operand, or null
  std::vector<const PatternNode*> outputs;   // likewise, per output of the rule
  std::vector<int> which;                    // output of the call, per output of the rule
};

struct Family {
  FamilySide source, target;
  const PatternNode* call = nullptr;  // of the source; the target's is the same
  const Condition* split = nullptr;   // null: no iteration dim is split
  std::vector<bool> no_partials;      // per input: a condition says so
  // The operands that hold partial sums on one side which the other reduces first.
  std::vector<bool> reduced;

  // The axis of operand o (of the rule's output t) that the split dim leads; null if it leads none.
  const IntExpr* OperandAxis(size_t o) const;
  const IntExpr* OutputAxis(size_t t) const;
};

// Nullopt if the pattern is no such side. The operator on operand o takes input o of the rule.
std::optional<FamilySide> SideOf(const Rule& rule, const Pattern& pattern);
// Nullopt if the rule is no family. The result points into `rule`.
std::optional<Family> TakeApart(const Rule& rule);

// The attribute of a pattern node that is an integer expression, or null.
const IntExpr* AttributeOf(const PatternNode& node, const char* name);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_FAMILIES_FAMILY_H_
