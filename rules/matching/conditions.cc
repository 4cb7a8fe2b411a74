#include "rules/matching/conditions.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "pcg/ir/operator_call.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "rules/theorems/structure.h"

namespace isomer {
namespace {

bool SplitHolds(const Condition& condition, const Binding& binding, const SourceCall& call) {
  const auto [op, operands] = call(condition.node);
  auto values = [&](const std::vector<std::optional<IntExpr>>& axes) {
    std::vector<std::optional<int64_t>> result;
    for (const auto& axis : axes) {
      result.push_back(axis.has_value() ? std::optional(Evaluate(*axis, binding)) : std::nullopt);
    }
    return result;
  };
  const auto operand_axes = values(condition.operand_axes),
             output_axes = values(condition.output_axes);
  const int64_t degree = Evaluate(condition.left, binding);
  for (const SplittableDim& dim : SplittableDims(op, operands)) {
    if (dim.operand_axes == operand_axes && dim.output_axes == output_axes) {
      return degree > 0 && dim.size % (dim.degree * degree) == 0;
    }
  }
  return false;
}

}  // namespace

bool ConditionHolds(const Condition& condition, const Binding& binding, const SourceCall& call) {
  // A size along an axis that an input lacks satisfies no comparison.
  for (const IntExpr* expr : {&condition.left, &condition.right}) {
    if (expr->kind == IntExpr::Kind::kSizeOf && DimOf(*expr, binding) == nullptr) return false;
  }
  switch (condition.kind) {
    case Condition::Kind::kEqual:
      return Evaluate(condition.left, binding) == Evaluate(condition.right, binding);
    case Condition::Kind::kNotEqual:
      return Evaluate(condition.left, binding) != Evaluate(condition.right, binding);
    case Condition::Kind::kAtMost:
      return Evaluate(condition.left, binding) <= Evaluate(condition.right, binding);
    case Condition::Kind::kDivides: {
      const Dim* dim = DimAt(binding, condition.input, Evaluate(condition.right, binding));
      const int64_t degree = Evaluate(condition.left, binding);
      return dim != nullptr && degree > 0 && dim->size % (dim->degree * degree) == 0;
    }
    case Condition::Kind::kSameType:
      return binding.inputs[condition.input] == binding.inputs[condition.input_b];
    case Condition::Kind::kNoPartials:
      return binding.inputs[condition.input].partials == 1;
    case Condition::Kind::kUnpartitioned: {
      const Dim* dim = DimAt(binding, condition.input, Evaluate(condition.right, binding));
      return dim != nullptr && dim->degree == 1;
    }
    case Condition::Kind::kSplitsDim:
      return SplitHolds(condition, binding, call);
    case Condition::Kind::kByStructure:
      return true;  // Of the whole rule: Admits.
  }
  return false;
}

namespace {

bool HoldsByStructure(const Rule& rule, const Binding& binding) {
  const auto source = SideAt(rule.source, binding), target = SideAt(rule.target, binding);
  std::set<std::string> lemmas;
  return source.ok() && target.ok() && EqualByStructure(*source, *target, &lemmas).ok();
}

// Or truth values, or whatever type it is told to make.
bool MakesIntegersOfFloats(OpKind kind) {
  const OperatorTraits& traits = TraitsOf(kind);
  const auto are_others = [](ResultType type) {
    return type == ResultType::kBool || type == ResultType::kInt64 ||
           type == ResultType::kOfAttribute;
  };
  return are_others(traits.result) || are_others(traits.other_results);
}

// Whether a call of the side rounds integers. A side that does not type-check has no calls.
bool Rounds(const Pattern& pattern, const Binding& binding) {
  const bool makes_integers =
      std::any_of(pattern.nodes.begin(), pattern.nodes.end(),
                  [](const PatternNode& node) { return MakesIntegersOfFloats(node.kind); });
  const bool all_float = std::all_of(binding.inputs.begin(), binding.inputs.end(),
                                     [](const TensorType& type) { return IsFloat(type.dtype); });
  if ((all_float && !makes_integers) ||
      std::none_of(pattern.nodes.begin(), pattern.nodes.end(),
                   [](const PatternNode& node) { return MayRoundIntegers(node.kind); })) {
    return false;
  }
  const absl::StatusOr<Graph> graph = InstantiatePattern(pattern, binding);
  if (!graph.ok()) return false;
  for (int id = static_cast<int>(binding.inputs.size()); id < graph->num_nodes(); ++id) {
    const Node& node = graph->node(id);
    if (RoundsIntegers(node.op, graph->type(node.inputs[0]).dtype, node.outputs[0].dtype)) {
      return true;
    }
  }
  return false;
}

bool VariablesAreSound(const Rule& rule, const Binding& binding) {
  for (const RuleVariable& variable : rule.variables) {
    const auto found = binding.variables.find(variable.name);
    const bool bound = found != binding.variables.end();
    switch (variable.kind) {
      case VariableKind::kAxis:
        if (!bound || found->second >= 0) return false;
        break;
      case VariableKind::kDegree:
      case VariableKind::kSize:
        if (!bound || found->second < 1) return false;
        break;
      case VariableKind::kNumber:
        if (binding.numbers.count(variable.name) == 0) return false;
        break;
      case VariableKind::kAttribute:
        if (binding.attributes.count(variable.name) == 0) return false;
        break;
    }
  }
  return true;
}

// No attribute of the target would have to be rounded.
bool NumbersAreExact(const Pattern& target, const Binding& binding) {
  if (binding.numbers.empty()) return true;
  for (const PatternNode& node : target.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* number = std::get_if<NumberExpr>(&attribute.value);
      if (number != nullptr && !Evaluate(*number, binding).has_value()) return false;
    }
  }
  return true;
}

}  // namespace

bool Admits(const Rule& rule, const Binding& binding, const SourceCall& call) {
  const auto ranks = std::find(rule.ranks.begin(), rule.ranks.end(), RanksOf(binding.inputs));
  if (ranks == rule.ranks.end()) return false;
  return VariablesAreSound(rule, binding) && NumbersAreExact(rule.target, binding) &&
         std::all_of(rule.conditions.begin(), rule.conditions.end(),
                     [&](const Condition& c) { return ConditionHolds(c, binding, call); }) &&
         !Rounds(rule.source, binding) && !Rounds(rule.target, binding) &&
         (!HasCondition(rule, Condition::Kind::kByStructure) || HoldsByStructure(rule, binding));
}

bool Admits(const Rule& rule, const Binding& binding) {
  absl::StatusOr<Graph> source;
  if (HasCondition(rule, Condition::Kind::kSplitsDim)) {
    source = InstantiatePattern(rule.source, binding);
    if (!source.ok()) return false;
  }
  return Admits(rule, binding, [&](int index) {
    const Node& node = source->node(static_cast<int>(binding.inputs.size()) + index);
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(source->type(input));
    return std::make_pair(node.op, types);
  });
}

Rule WithoutConditions(Rule rule, Condition::Kind kind) {
  std::erase_if(rule.conditions, [kind](const Condition& c) { return c.kind == kind; });
  SetId(&rule);
  return rule;
}

}  // namespace isomer
