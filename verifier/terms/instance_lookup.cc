// What expressions of a rule stand for at an instance.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verifier/terms/rule_instance.h"

namespace isomer {

VariableKind KindOf(const Rule& rule, const std::string& variable) {
  for (const RuleVariable& known : rule.variables) {
    if (known.name == variable) return known.kind;
  }
  return VariableKind::kAttribute;
}

std::optional<int64_t> AxisAt(const IntExpr& expr, const RuleInstance& instance) {
  if (expr.kind == IntExpr::Kind::kConstant) return expr.constant;
  auto at = instance.axes.find(expr.variable);
  if (expr.kind != IntExpr::Kind::kVariable || at == instance.axes.end()) return std::nullopt;
  return at->second;
}

std::optional<Extent> SizeAt(const IntExpr& expr, const RuleInstance& instance) {
  switch (expr.kind) {
    case IntExpr::Kind::kConstant:
      return Extent(expr.constant);
    case IntExpr::Kind::kVariable: {
      auto at = instance.sizes.find(expr.variable);
      if (at == instance.sizes.end()) return std::nullopt;
      return at->second;
    }
    case IntExpr::Kind::kSizeOf: {
      const std::optional<int64_t> axis = expr.variable.empty()
                                              ? std::optional<int64_t>(expr.constant)
                                              : AxisAt(IntExpr::Variable(expr.variable), instance);
      if (!axis) return std::nullopt;
      const Shape& shape = instance.inputs[expr.input];
      const absl::StatusOr<int> i = NormalizeAxis(*axis, static_cast<int>(shape.size()));
      if (!i.ok()) return std::nullopt;
      return shape[*i];
    }
    case IntExpr::Kind::kProduct:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string RuleInstance::ToString() const {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(
        &text, i == 0 ? "" : ", ", "x", i, "[",
        absl::StrJoin(inputs[i], ",",
                      [](std::string* out, const Extent& size) { out->append(size.ToString()); }),
        "]");
  }
  for (const auto& [name, axis] : axes) absl::StrAppend(&text, ", ", name, "=", axis);
  return text;
}

}  // namespace isomer
