// What makes a rule well formed, so that nothing after loading has to look again.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

constexpr int kMaxInputs = 64, kMaxNodes = 64, kMaxRank = 16, kMaxVariables = 256;

// The outputs that a call may have: as many as are known without its operands.
int MaxOutputs(const PatternNode& node) {
  if (node.kind == OpKind::kSplit) {
    for (const AttributePattern& attribute : node.attributes) {
      if (const auto* sizes = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
        return static_cast<int>(sizes->size());
      }
    }
  }
  return TraitsOf(node.kind).most_outputs;
}

class RuleValidator {
 public:
  explicit RuleValidator(const Rule& rule) : rule_(rule) {}

  absl::Status Validate() {
    if (rule_.num_inputs < 1 || rule_.num_inputs > kMaxInputs) {
      return absl::InvalidArgumentError(absl::StrCat("has ", rule_.num_inputs, " inputs"));
    }
    if (rule_.variables.size() > kMaxVariables) {
      return absl::InvalidArgumentError(absl::StrCat("has ", rule_.variables.size(), " variables"));
    }
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.name.empty() || Find(variable.name) != &variable) {
        return absl::InvalidArgumentError(
            absl::StrCat("variable '", variable.name, "' is declared twice"));
      }
    }
    ISOMER_RETURN_IF_ERROR(CheckRanks());
    ISOMER_RETURN_IF_ERROR(CheckPattern(rule_.source, "source"));
    ISOMER_RETURN_IF_ERROR(CheckPattern(rule_.target, "target"));
    if (rule_.source.outputs.empty() ||
        rule_.source.outputs.size() != rule_.target.outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat("has ", rule_.source.outputs.size(),
                                                     " source and ", rule_.target.outputs.size(),
                                                     " target outputs"));
    }
    // A later output might be computed from an earlier one that is only renamed: a cycle.
    for (const Pattern* side : {&rule_.source, &rule_.target}) {
      if (side == &rule_.target && !rule_.reversible) break;
      for (PatternRef ref : side->outputs) {
        if (ref.node < 0 && side->outputs.size() > 1) {
          return absl::InvalidArgumentError("one of several source outputs is an input");
        }
      }
    }
    for (const Condition& condition : rule_.conditions) {
      if (absl::Status status = CheckCondition(condition); !status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("condition ", condition.ToString(), ": ", status.message()));
      }
    }
    // An attribute variable takes its value from the source.
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kAttribute &&
          std::find(source_attributes_.begin(), source_attributes_.end(), variable.name) ==
              source_attributes_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute variable '", variable.name, "' is not in the source"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckRanks() const {
    if (rule_.ranks.empty()) return absl::InvalidArgumentError("has no rank vectors");
    for (const std::vector<int>& vector : rule_.ranks) {
      const bool fits = static_cast<int>(vector.size()) == rule_.num_inputs &&
                        std::all_of(vector.begin(), vector.end(),
                                    [](int rank) { return rank >= 0 && rank <= kMaxRank; });
      if (!fits)
        return absl::InvalidArgumentError("has a rank vector that does not fit its inputs");
    }
    return absl::OkStatus();
  }

  absl::Status CheckPattern(const Pattern& pattern, absl::string_view side) {
    if (pattern.nodes.size() > kMaxNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat(side, " has ", pattern.nodes.size(), " nodes"));
    }
    for (int n = 0; n < static_cast<int>(pattern.nodes.size()); ++n) {
      if (absl::Status status = CheckNode(pattern, n, side); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(side, " node ", n, ": ", status.message()));
      }
    }
    for (PatternRef ref : pattern.outputs) {
      if (absl::Status status = CheckRef(pattern, ref, static_cast<int>(pattern.nodes.size()));
          !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(side, " outputs: ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  // `end`: nodes before it may be used.
  absl::Status CheckRef(const Pattern& pattern, PatternRef ref, int end) const {
    if (ref.node < 0 ? ref.index < 0 || ref.index >= rule_.num_inputs
                     : ref.node >= end || ref.index < 0 || ref.index >= 64) {
      return absl::InvalidArgumentError(ref.node < 0
                                            ? absl::StrCat("there is no input ", ref.index)
                                            : absl::StrCat("uses node ", ref.node, " (output ",
                                                           ref.index, "), which is not before it"));
    }
    if (ref.node >= 0 && ref.index >= MaxOutputs(pattern.nodes[ref.node])) {
      return absl::InvalidArgumentError(
          absl::StrCat("uses output ", ref.index, " of node ", ref.node, " (",
                       OpName(pattern.nodes[ref.node].kind), "), which has fewer"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(const Pattern& pattern, int n, absl::string_view side) {
    const PatternNode& node = pattern.nodes[n];
    const int operands = static_cast<int>(node.inputs.size());
    if (IsLeaf(node.kind))
      return absl::InvalidArgumentError(
          absl::StrCat(OpName(node.kind), " is no operator of rules"));
    if (operands < MinOperands(node.kind) || operands > MaxOperands(node.kind)) {
      return absl::InvalidArgumentError(
          absl::StrCat(OpName(node.kind), " has ", operands, " operands"));
    }
    for (PatternRef ref : node.inputs) ISOMER_RETURN_IF_ERROR(CheckRef(pattern, ref, n));
    for (size_t a = 0; a < node.attributes.size(); ++a) {
      const AttributePattern& attribute = node.attributes[a];
      if (a > 0 && node.attributes[a - 1].name >= attribute.name) {
        return absl::InvalidArgumentError(
            node.attributes[a - 1].name == attribute.name
                ? absl::StrCat("attribute '", attribute.name, "' occurs twice")
                : "attributes are not sorted by name");
      }
      ISOMER_RETURN_IF_ERROR(CheckAttribute(attribute, side == "source"));
    }
    return CheckForm(node);
  }

  absl::Status CheckAttribute(const AttributePattern& attribute, bool is_source) {
    if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      ISOMER_RETURN_IF_ERROR(CheckInt(*expr));
      if (attribute.name == "axis" && !IsAxis(*expr)) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis is ", expr->ToString(), "; axes count from the end"));
      }
      if (attribute.name == "degree" && !IsDegree(*expr)) {
        return absl::InvalidArgumentError(
            absl::StrCat("degree is ", expr->ToString(), ", which is none"));
      }
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      // Clip goes up to infinity; there is no product with it.
      if (std::isnan(number->constant) ||
          (!number->variables.empty() && !std::isfinite(number->constant))) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute '", attribute.name, "' is ", number->constant));
      }
      for (const std::string& name : number->variables) {
        ISOMER_RETURN_IF_ERROR(CheckVariable(name, {VariableKind::kNumber}));
      }
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      for (const IntExpr& item : *list) ISOMER_RETURN_IF_ERROR(CheckInt(item));
      if (attribute.name == "sizes") return absl::OkStatus();
      for (const IntExpr& item : *list) {
        if (attribute.name == "axes" ? !IsAxis(item) : item.kind != IntExpr::Kind::kConstant) {
          return absl::InvalidArgumentError(absl::StrCat(
              attribute.name, " lists ", item.ToString(),
              "; axes count from the end, and other lists but sizes are of constants"));
        }
      }
    } else if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      if (attribute.name != "perm" || swap->a >= 0 || swap->b >= 0 || swap->a == swap->b) {
        return absl::InvalidArgumentError("swap() is a perm of two axes counted from the end");
      }
    } else {
      const std::string& name = std::get<AttributeVariable>(attribute.value).name;
      ISOMER_RETURN_IF_ERROR(CheckVariable(name, {VariableKind::kAttribute}));
      if (is_source) source_attributes_.push_back(name);
    }
    return absl::OkStatus();
  }

  // Whether the operator has these attributes, of these types. Files hold few forms of nodes, so
  // what was found to be well formed is remembered.
  static absl::Status CheckForm(const PatternNode& node) {
    static thread_local absl::flat_hash_set<std::string> known;
    std::string form(OpName(node.kind));
    for (const AttributePattern& a : node.attributes) {
      absl::StrAppend(&form, " ", a.name.size(), ":", a.name, a.value.index());
    }
    if (known.contains(form)) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(TryStandIns(node));
    known.insert(std::move(form));
    return absl::OkStatus();
  }

  // Instantiating the attributes with stand-in values lets the operator list judge them. Those that
  // are variables try the types that the operator list might want.
  static absl::Status TryStandIns(const PatternNode& node) {
    const AttributeValue stand_ins[] = {int64_t{1}, 1.0, std::vector<int64_t>{1},
                                        std::vector<Extent>{1}};
    Operator op(node.kind);
    std::map<std::string, size_t> tried;
    for (const AttributePattern& a : node.attributes) {
      if (std::holds_alternative<NumberExpr>(a.value)) {
        op.Set(a.name, stand_ins[1]);
      } else if (std::holds_alternative<SwapAxes>(a.value)) {
        op.Set(a.name, stand_ins[2]);
      } else if (std::holds_alternative<std::vector<IntExpr>>(a.value)) {
        op.Set(a.name, stand_ins[a.name == "sizes" ? 3 : 2]);
      } else {
        op.Set(a.name, stand_ins[0]);
        if (std::holds_alternative<AttributeVariable>(a.value)) tried[a.name] = 0;
      }
    }
    while (true) {
      Operator probe = op;
      absl::Status status = NormalizeAttributes(&probe);
      bool changed = false;
      for (auto& [name, next] : tried) {
        const bool wrong =
            absl::StrContains(status.message(), absl::StrCat("'", name, "' has the wrong type"));
        if (!wrong || ++next >= std::size(stand_ins)) continue;
        op.Set(name, stand_ins[next]);
        changed = true;
      }
      if (changed) continue;
      ISOMER_RETURN_IF_ERROR(status);
      // What a pattern does not name, it would be proved with the default of, and used with any.
      for (const Attribute& attribute : probe.attributes()) {
        if (op.Find(attribute.name) == nullptr) {
          return absl::InvalidArgumentError(absl::StrCat(
              OpName(node.kind), " does not name its attribute '", attribute.name, "'"));
        }
      }
      return absl::OkStatus();
    }
  }

  // The declaration of a variable, or null.
  const RuleVariable* Find(const std::string& name) const {
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.name == name) return &variable;
    }
    return nullptr;
  }

  bool IsAxis(const IntExpr& expr) const {
    if (expr.kind == IntExpr::Kind::kConstant) return expr.constant < 0;
    return expr.kind == IntExpr::Kind::kVariable && IsOfKind(expr.variable, VariableKind::kAxis);
  }
  bool IsDegree(const IntExpr& expr) const {
    if (expr.kind == IntExpr::Kind::kConstant) return expr.constant >= 1;
    if (expr.kind == IntExpr::Kind::kSizeOf) return false;
    return IsOfKind(expr.variable, VariableKind::kDegree) &&
           (expr.kind != IntExpr::Kind::kProduct || IsOfKind(expr.factor, VariableKind::kDegree));
  }

  bool IsOfKind(const std::string& name, VariableKind kind) const {
    const RuleVariable* const variable = Find(name);
    return variable != nullptr && variable->kind == kind;
  }

  absl::Status CheckVariable(const std::string& name,
                             std::initializer_list<VariableKind> kinds) const {
    const RuleVariable* const variable = Find(name);
    if (variable == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("variable '", name, "' is not declared"));
    }
    if (std::find(kinds.begin(), kinds.end(), variable->kind) == kinds.end()) {
      return absl::InvalidArgumentError(absl::StrCat("variable '", name, "' is of another kind"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckInt(const IntExpr& expr) const {
    static constexpr std::initializer_list<VariableKind> integers = {
        VariableKind::kAxis, VariableKind::kDegree, VariableKind::kSize};
    switch (expr.kind) {
      case IntExpr::Kind::kConstant:
        return absl::OkStatus();
      case IntExpr::Kind::kVariable:
        return CheckVariable(expr.variable, integers);
      case IntExpr::Kind::kProduct:
        ISOMER_RETURN_IF_ERROR(CheckVariable(expr.variable, integers));
        return CheckVariable(expr.factor, integers);
      case IntExpr::Kind::kSizeOf:
        if (expr.input < 0 || expr.input >= rule_.num_inputs) {
          return absl::InvalidArgumentError(absl::StrCat("there is no input ", expr.input));
        }
        if (!expr.variable.empty()) return CheckVariable(expr.variable, {VariableKind::kAxis});
        return expr.constant < 0 ? absl::OkStatus()
                                 : absl::InvalidArgumentError("axes count from the end");
    }
    return absl::OkStatus();
  }

  absl::Status CheckInput(int input) const {
    if (input >= 0 && input < rule_.num_inputs) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("there is no input ", input));
  }

  absl::Status CheckCondition(const Condition& condition) const {
    ISOMER_RETURN_IF_ERROR(CheckInt(condition.left));
    ISOMER_RETURN_IF_ERROR(CheckInt(condition.right));
    switch (condition.kind) {
      case Condition::Kind::kEqual:
      case Condition::Kind::kNotEqual:
      case Condition::Kind::kAtMost:
        return absl::OkStatus();
      case Condition::Kind::kDivides:
      case Condition::Kind::kUnpartitioned:
        if (!IsAxis(condition.right)) return absl::InvalidArgumentError("the axis is no axis");
        return CheckInput(condition.input);
      case Condition::Kind::kSameType:
        ISOMER_RETURN_IF_ERROR(CheckInput(condition.input));
        return CheckInput(condition.input_b);
      case Condition::Kind::kNoPartials:
        return CheckInput(condition.input);
      case Condition::Kind::kSplitsDim:
        return CheckSplit(condition);
      case Condition::Kind::kByStructure:
        return CheckNoParallel();
    }
    return absl::InvalidArgumentError("of an unknown kind");
  }

  absl::Status CheckNoParallel() const {
    for (const Pattern* side : {&rule_.source, &rule_.target}) {
      for (const PatternNode& node : side->nodes) {
        if (IsParallel(node.kind)) {
          return absl::InvalidArgumentError(
              absl::StrCat("by_structure does not speak of ", std::string(OpName(node.kind))));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSplit(const Condition& condition) const {
    if (condition.node < 0 || condition.node >= static_cast<int>(rule_.source.nodes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("there is no source node ", condition.node));
    }
    if (rule_.reversible)
      return absl::InvalidArgumentError("a reversible rule cannot speak of source nodes");
    if (condition.operand_axes.size() != rule_.source.nodes[condition.node].inputs.size()) {
      return absl::InvalidArgumentError("needs an entry for every operand");
    }
    for (const auto* axes : {&condition.operand_axes, &condition.output_axes}) {
      for (const std::optional<IntExpr>& axis : *axes) {
        if (axis.has_value() && !IsAxis(*axis))
          return absl::InvalidArgumentError("an entry is no axis");
      }
    }
    return absl::OkStatus();
  }

  const Rule& rule_;
  std::vector<std::string> source_attributes_;
};

}  // namespace

absl::Status ValidateRule(const Rule& rule) { return RuleValidator(rule).Validate(); }

}  // namespace isomer
