// A rule at definite ranks and axes, with symbolic sizes.
//
// Ranks, axes and which dims are broadcast are finitely many; a rule is taken apart into one
// instance for each combination in which its source has logical shapes. Sizes stay symbols >= 1:
// those that the source needs equal are one symbol, those that it broadcasts are 1.
#ifndef ISOMER_VERIFIER_TERMS_RULE_INSTANCE_H_
#define ISOMER_VERIFIER_TERMS_RULE_INSTANCE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/declaration.h"
#include "rules/language/rule.h"
#include "verifier/elements/term.h"

namespace isomer {

struct Call {
  const PatternNode* node = nullptr;
  Symbol symbol;                           // output 0
  std::optional<Declaration> declaration;  // of operators that are declared
  std::vector<Shape> outputs;
  int axis = -1;                // of parallel operators that have one, from the front
  bool passes_partials = true;  // PassesPartials
};

struct RuleInstance {
  const Rule* rule = nullptr;
  std::map<std::string, int64_t> axes;  // axis variables, from the end
  std::vector<Shape> inputs;
  std::map<std::string, Extent> sizes;  // size variables
  std::vector<Call> source, target;
  // Why the target has no logical shapes, or others than the source; then `target` is cut short.
  absl::Status target_status;

  const Shape& ShapeOf(const std::vector<Call>& side, PatternRef ref) const {
    return ref.node < 0 ? inputs[ref.index] : side[ref.node].outputs[ref.index];
  }
  std::string ToString() const;
};

// All instances of `rule`. Errors: an operator whose meaning needs known sizes or attributes.
absl::StatusOr<std::vector<RuleInstance>> InstancesOf(const Rule& rule);

// The axis or size that an expression stands for at an instance (with its inputs and variables).
std::optional<int64_t> AxisAt(const IntExpr& expr, const RuleInstance& instance);
std::optional<Extent> SizeAt(const IntExpr& expr, const RuleInstance& instance);
VariableKind KindOf(const Rule& rule, const std::string& variable);
// The iteration dim of a source call that a kSplitsDim condition speaks of, or -1.
int SplitDimAt(const Condition& condition, const RuleInstance& instance);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_TERMS_RULE_INSTANCE_H_
