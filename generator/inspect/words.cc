#include "generator/inspect/words.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

std::string ExprInWords(const IntExpr& expr) {
  if (expr.kind != IntExpr::Kind::kSizeOf) return expr.ToString();
  return absl::StrCat("the size of x", expr.input, " at axis ",
                      expr.variable.empty() ? absl::StrCat(expr.constant) : expr.variable);
}

// "axis i0 of operand 0 and axis i1 of operand 1".
std::string LedAxes(const std::vector<std::optional<IntExpr>>& axes, const char* of) {
  std::vector<std::string> led;
  for (size_t o = 0; o < axes.size(); ++o) {
    if (axes[o].has_value()) {
      led.push_back(absl::StrCat("axis ", axes[o]->ToString(), " of ", of, " ", o));
    }
  }
  return absl::StrJoin(led, ", ");
}

std::string SplitInWords(const Condition& c, const Rule& rule) {
  const std::string call =
      absl::StrCat(OpName(rule.source.nodes[c.node].kind), " (source node ", c.node, ")");
  const std::string operands = LedAxes(c.operand_axes, "operand"),
                    outputs = LedAxes(c.output_axes, "output");
  return absl::StrCat(call, " has an iteration dim that may be partitioned and is ",
                      operands.empty() ? "no axis of an operand" : operands,
                      outputs.empty() ? ", summed over" : absl::StrCat(", ", outputs),
                      ", and of nothing else; ", c.left.ToString(),
                      " times the degree of that dim divides its size");
}

}  // namespace

std::string ConditionInWords(const Condition& c, const Rule& rule) {
  const std::string left = ExprInWords(c.left), right = ExprInWords(c.right);
  switch (c.kind) {
    case Condition::Kind::kEqual:
      return absl::StrCat(left, " equals ", right);
    case Condition::Kind::kNotEqual:
      return absl::StrCat(left, " differs from ", right);
    case Condition::Kind::kAtMost:
      return absl::StrCat(left, " is at most ", right);
    case Condition::Kind::kDivides:
      return absl::StrCat(left, " times the degree of x", c.input, " at axis ", right,
                          " divides the size of x", c.input, " there");
    case Condition::Kind::kSameType:
      return absl::StrCat("x", c.input, " and x", c.input_b, " have the same type");
    case Condition::Kind::kNoPartials:
      return absl::StrCat("x", c.input, " holds no partial sums");
    case Condition::Kind::kUnpartitioned:
      return absl::StrCat("x", c.input, " is not partitioned at axis ", right);
    case Condition::Kind::kSplitsDim:
      return SplitInWords(c, rule);
    case Condition::Kind::kByStructure:
      return "the calls' declarations show it (rules/theorems/structure.h)";
  }
  return "?";
}

std::string VariablesInWords(const Rule& rule) {
  struct Group {
    VariableKind kind;
    const char* name;
  };
  constexpr Group kGroups[] = {{VariableKind::kDegree, "degrees above 0"},
                               {VariableKind::kAxis, "axes, counted from the end"},
                               {VariableKind::kSize, "sizes above 0"},
                               {VariableKind::kNumber, "numbers"},
                               {VariableKind::kAttribute, "attributes of any value"}};
  std::vector<std::string> groups;
  for (const Group& group : kGroups) {
    std::vector<std::string> names;
    for (const RuleVariable& variable : rule.variables) {
      if (variable.kind == group.kind) names.push_back(variable.name);
    }
    if (!names.empty()) {
      groups.push_back(absl::StrCat(absl::StrJoin(names, ", "), " (", group.name, ")"));
    }
  }
  return groups.empty() ? "none" : absl::StrJoin(groups, "; ");
}

}  // namespace isomer
