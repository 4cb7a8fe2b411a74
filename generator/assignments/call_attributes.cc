#include "generator/assignments/call_attributes.h"

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

bool IsOperandAxis(const Operator& op, const std::string& name) {
  return name == "axis" && !TraitsOf(op.kind()).axis_is_of_result;
}

// False: a list, which cannot be a constant.
bool AddConstant(const OperatorCall& call, const Attribute& a, CallAttributes* result) {
  if (auto* number = std::get_if<double>(&a.value)) {
    result->attributes.push_back({a.name, NumberExpr{*number, {}}});
  } else if (auto* integer = std::get_if<int64_t>(&a.value)) {
    const bool from_front = IsOperandAxis(call.op, a.name) && *integer >= 0;
    const int64_t rank = call.operands[0].rank();
    result->attributes.push_back(
        {a.name, IntExpr::Constant(from_front ? *integer - rank : *integer)});
  } else {
    return false;
  }
  return true;
}

void AddVariable(const OperatorCall& call, const Attribute& a, const CallVariableNames& names,
                 CallAttributes* result) {
  const std::string name = names.prefix + a.name;
  Binding& binding = result->binding;
  auto declare = [result](const std::string& variable, VariableKind kind) {
    result->variables.push_back({variable, kind});
  };
  auto* sizes = std::get_if<std::vector<Extent>>(&a.value);
  if (auto* number = std::get_if<double>(&a.value)) {
    result->attributes.push_back({a.name, NumberExpr{1, {name}}});
    declare(name, VariableKind::kNumber);
    binding.numbers[name] = *number;
  } else if (IsOperandAxis(call.op, a.name)) {
    const int64_t axis = std::get<int64_t>(a.value);
    result->attributes.push_back({a.name, IntExpr::Variable("a")});
    declare("a", VariableKind::kAxis);
    binding.variables["a"] = axis >= 0 ? axis - call.operands[0].rank() : axis;
  } else if (sizes != nullptr && call.op.kind() == OpKind::kSplit) {
    std::vector<IntExpr> parts;
    for (size_t s = 0; s < sizes->size(); ++s) {
      parts.push_back(IntExpr::Variable(absl::StrCat(names.part, s)));
      declare(parts.back().variable, VariableKind::kSize);
      binding.variables[parts.back().variable] = (*sizes)[s].value();
    }
    result->attributes.push_back({a.name, parts});
  } else {
    result->attributes.push_back({a.name, AttributeVariable{name}});
    declare(name, VariableKind::kAttribute);
    binding.attributes[name] = a.value;
  }
}

}  // namespace

std::optional<CallAttributes> AttributesOfCall(const OperatorCall& call,
                                               const CallVariableNames& names,
                                               const std::set<std::string>& constants) {
  CallAttributes result;
  for (const Attribute& a : call.op.attributes()) {
    if (constants.count(a.name) == 0) {
      AddVariable(call, a, names, &result);
    } else if (!AddConstant(call, a, &result)) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace isomer
