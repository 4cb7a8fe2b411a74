#include "rules/calls/bind_call.h"

#include <algorithm>
#include <optional>
#include <string>

#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

// Binds a variable that is not bound. False: it is another value, as is a constant.
bool BindInt(const IntExpr& expr, int64_t value, Binding* binding) {
  if (expr.kind == IntExpr::Kind::kVariable) {
    return binding->variables.emplace(expr.variable, value).first->second == value;
  }
  return expr.kind != IntExpr::Kind::kConstant || expr.constant == value;
}

bool BindNumber(const NumberExpr& number, double value, Binding* binding) {
  if (number.variables.empty()) return number.constant == value;
  for (const std::string& name : number.variables) {
    binding->numbers.emplace(name, value / number.constant);
  }
  return true;
}

// Counted from the end, as patterns count, if it is one of the first operand.
int64_t AxisOf(const OperatorCall& call, int64_t axis) {
  const bool is_of_result = TraitsOf(call.op.kind()).axis_is_of_result;
  return axis < 0 || is_of_result ? axis : axis - call.operands[0].rank();
}

using Axes = std::vector<std::optional<int64_t>>;

bool BindAxesOf(const std::vector<std::optional<IntExpr>>& named, const Axes& led,
                Binding* binding) {
  return std::equal(named.begin(), named.end(), led.begin(), led.end(),
                    [&](const auto& expr, const auto& axis) {
                      return expr.has_value() == axis.has_value() &&
                             (!axis.has_value() || BindInt(*expr, *axis, binding));
                    });
}

}  // namespace

Dim* DimAlongAxis(const PatternNode& node, const Binding& binding, TensorType* type) {
  const auto* axis = AttributeOf<IntExpr>(node, "axis");
  if (axis == nullptr) return nullptr;
  const int64_t at = type->rank() + Evaluate(*axis, binding);
  return at < 0 || at >= type->rank() ? nullptr : &type->dims[at];
}

bool BindAttributes(const PatternNode& node, const OperatorCall& call, Binding* binding) {
  for (const AttributePattern& pattern : node.attributes) {
    const AttributeValue* value = call.op.Find(pattern.name);
    if (value == nullptr) return false;
    if (auto* variable = std::get_if<AttributeVariable>(&pattern.value)) {
      binding->attributes[variable->name] = *value;
    } else if (auto* number = std::get_if<NumberExpr>(&pattern.value)) {
      const auto* given = std::get_if<double>(value);
      if (given == nullptr || !BindNumber(*number, *given, binding)) return false;
    } else if (auto* expr = std::get_if<IntExpr>(&pattern.value)) {
      const auto* given = std::get_if<int64_t>(value);
      if (given == nullptr) return false;
      const int64_t known = pattern.name == "axis" ? AxisOf(call, *given) : *given;
      if (!BindInt(*expr, known, binding)) return false;
    }
  }
  return true;
}

bool HasOpenAttributes(const PatternNode& node, const Binding& binding) {
  for (const AttributePattern& attribute : node.attributes) {
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      if (!binding.attributes.contains(variable->name)) return true;
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      for (const std::string& name : number->variables) {
        if (!binding.numbers.contains(name)) return true;
      }
    }
  }
  return false;
}

const Condition* SplitOf(const Rule& rule) {
  const auto split =
      std::find_if(rule.conditions.begin(), rule.conditions.end(),
                   [](const Condition& c) { return c.kind == Condition::Kind::kSplitsDim; });
  return split == rule.conditions.end() ? nullptr : &*split;
}

bool BindAxes(const Condition& split, const SplittableDim& dim, Binding* binding) {
  return BindAxesOf(split.operand_axes, dim.operand_axes, binding) &&
         BindAxesOf(split.output_axes, dim.output_axes, binding);
}

}  // namespace isomer
