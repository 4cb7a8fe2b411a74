// Binding attribute variables to the attributes of a graph node.
#include <optional>

#include "pcg/evaluation/exact_number.h"
#include "rules/matching/match.h"

namespace isomer {
namespace {

bool BindInt(const std::string& name, int64_t value, Binding* binding) {
  return binding->variables.emplace(name, value).first->second == value;
}

bool UnifyInt(const IntExpr& expr, int64_t value, Binding* binding) {
  switch (expr.kind) {
    case IntExpr::Kind::kConstant:
      return expr.constant == value;
    case IntExpr::Kind::kVariable:
      return BindInt(expr.variable, value, binding);
    case IntExpr::Kind::kSizeOf:
      return true;  // The inputs are not bound yet.
    case IntExpr::Kind::kProduct: {
      const auto a = binding->variables.find(expr.variable);
      const auto b = binding->variables.find(expr.factor);
      if ((a == binding->variables.end()) == (b == binding->variables.end())) return true;
      const bool has_a = a != binding->variables.end();
      const int64_t known = has_a ? a->second : b->second;
      return known != 0 && value % known == 0 &&
             BindInt(has_a ? expr.factor : expr.variable, value / known, binding);
    }
  }
  return false;
}

bool UnifyNumber(const NumberExpr& expr, double value, Binding* binding) {
  if (expr.variables.size() != 1) return true;
  if (expr.constant == 0) return value == 0;
  const std::optional<double> number = ExactQuotient(value, expr.constant);
  return number.has_value() &&
         binding->numbers.emplace(expr.variables[0], *number).first->second == *number;
}

int64_t FromEnd(int64_t axis, int rank) { return axis >= 0 ? axis - rank : axis; }

// A list of integers, as integers or as known sizes.
std::optional<std::vector<int64_t>> ListOf(const AttributeValue& value) {
  if (auto* integers = std::get_if<std::vector<int64_t>>(&value)) return *integers;
  auto* extents = std::get_if<std::vector<Extent>>(&value);
  if (extents == nullptr) return std::nullopt;
  std::vector<int64_t> integers;
  for (const Extent& extent : *extents) {
    if (!extent.known()) return std::nullopt;
    integers.push_back(extent.value());
  }
  return integers;
}

std::vector<int64_t> FromEnd(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) axis = FromEnd(axis, rank);
  return axes;
}

}  // namespace

bool UnifyAttributes(const PatternNode& node, const Operator& op, int operand_rank,
                     Binding* binding) {
  for (const AttributePattern& attribute : node.attributes) {
    const AttributeValue* value = op.Find(attribute.name);
    if (value == nullptr) return false;
    if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      const int64_t* integer = std::get_if<int64_t>(value);
      if (integer == nullptr) return false;
      const bool is_axis = attribute.name == "axis";
      if (!UnifyInt(*expr, is_axis ? FromEnd(*integer, operand_rank) : *integer, binding)) {
        return false;
      }
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      const double* real = std::get_if<double>(value);
      if (real == nullptr || !UnifyNumber(*number, *real, binding)) return false;
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      const std::optional<std::vector<int64_t>> values = ListOf(*value);
      if (!values.has_value() || values->size() != list->size()) return false;
      for (size_t i = 0; i < list->size(); ++i) {
        const int64_t item =
            attribute.name == "axes" ? FromEnd((*values)[i], operand_rank) : (*values)[i];
        if (!UnifyInt((*list)[i], item, binding)) return false;
      }
    } else if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      if (binding->attributes.emplace(variable->name, *value).first->second != *value) return false;
    }
  }
  return true;
}

bool AttributesAgree(const PatternNode& node, const Operator& op, int operand_rank,
                     const Binding& binding) {
  const absl::StatusOr<Operator> expected = InstantiateOperator(node, binding, operand_rank);
  if (!expected.ok() || expected->attributes().size() != op.attributes().size()) return false;
  for (const Attribute& attribute : expected->attributes()) {
    const AttributeValue* value = op.Find(attribute.name);
    if (value == nullptr || value->index() != attribute.value.index()) return false;
    if (attribute.name == "axis") {
      if (FromEnd(std::get<int64_t>(*value), operand_rank) !=
          FromEnd(std::get<int64_t>(attribute.value), operand_rank)) {
        return false;
      }
    } else if (attribute.name == "axes") {
      if (FromEnd(std::get<std::vector<int64_t>>(*value), operand_rank) !=
          FromEnd(std::get<std::vector<int64_t>>(attribute.value), operand_rank)) {
        return false;
      }
    } else if (*value != attribute.value) {
      return false;
    }
  }
  return true;
}

}  // namespace isomer
