#include "verifier/terms/instance_symmetry.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "verifier/terms/symbol_renaming.h"

namespace isomer {

bool TreatsDimsAlike(const Declaration& d) {
  if (d.outputs.size() != 1) return false;
  const size_t rank = d.outputs[0].size();
  auto from_right = [&](const std::vector<Index>& indices) {
    const size_t missing = rank - indices.size();
    for (size_t i = 0; i < indices.size(); ++i) {
      const bool broadcast = indices[i] == Index();
      if (!broadcast && indices[i] != Index(static_cast<int>(i + missing))) return false;
    }
    return true;
  };
  for (const Access& access : d.accesses) {
    if (access.indices.size() > rank || !from_right(access.indices)) return false;
  }
  return std::all_of(d.statements.begin(), d.statements.end(), [&](const Statement& s) {
    return s.reduction == Reduction::kNone && s.select_dim < 0 && s.indices.size() == rank &&
           from_right(s.indices) &&
           std::none_of(s.body.begin(), s.body.end(),
                        [](const Instruction& i) { return i.op == ScalarOp::kIndex; });
  });
}

namespace {

// How a call tells dims apart is known: by the axes that it names.
bool NamesItsAxes(OpKind kind) {
  switch (kind) {
    case OpKind::kMatMul:
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kTranspose:
    case OpKind::kConcat:
    case OpKind::kSplit:
      return true;
    default:
      return IsParallel(kind);
  }
}

// All other calls do at one dim what they do at another.
bool TreatsDimsAlikeIn(const RuleInstance& instance) {
  if (!instance.target_status.ok()) return false;  // The target is cut short.
  for (const std::vector<Call>* side : {&instance.source, &instance.target}) {
    for (const Call& call : *side) {
      if (!NamesItsAxes(call.node->kind) && !TreatsDimsAlike(*call.declaration)) return false;
    }
  }
  return true;
}

// The constant axes that a rule names. Not known: an attribute may tell dims apart by other means.
class NamedAxes {
 public:
  explicit NamedAxes(const Rule& rule) {
    for (const Pattern* side : {&rule.source, &rule.target}) {
      for (const PatternNode& node : side->nodes) AddNode(node);
    }
    for (const Condition& condition : rule.conditions) {
      for (const IntExpr* expr : {&condition.left, &condition.right}) AddSize(*expr);
      for (const auto* axes : {&condition.operand_axes, &condition.output_axes}) {
        for (const std::optional<IntExpr>& axis : *axes) {
          if (axis) AddAxis(*axis);
        }
      }
      if (condition.kind == Condition::Kind::kDivides ||
          condition.kind == Condition::Kind::kUnpartitioned) {
        AddAxis(condition.right);
      }
    }
  }

  bool known() const { return known_; }
  const std::set<int64_t>& constants() const { return constants_; }

 private:
  void AddNode(const PatternNode& node) {
    switch (node.kind) {
      case OpKind::kMatMul:
        constants_.insert({-1, -2});
        break;
      case OpKind::kReduceSum:
      case OpKind::kReduceMean:
        known_ &= KeepsDims(node);
        break;
      default:
        break;
    }
    for (const AttributePattern& attribute : node.attributes) AddAttribute(attribute);
  }

  // Else axes of the output are others than those of the operand.
  static bool KeepsDims(const PatternNode& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& attribute) {
      const auto* keeps = std::get_if<IntExpr>(&attribute.value);
      return attribute.name == "keepdims" && keeps != nullptr && *keeps == IntExpr::Constant(1);
    });
  }

  void AddAttribute(const AttributePattern& attribute) {
    const bool of_axes = attribute.name == "axis" || attribute.name == "axes";
    if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      constants_.insert({swap->a, swap->b});
    } else if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      of_axes ? AddAxis(*expr) : AddSize(*expr);
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      for (const IntExpr& item : *list) of_axes ? AddAxis(item) : AddSize(item);
    } else if (std::holds_alternative<AttributeVariable>(attribute.value)) {
      known_ = false;
    }
  }

  // Axis variables are named whatever they are.
  void AddAxis(const IntExpr& expr) {
    if (expr.kind != IntExpr::Kind::kConstant) return;
    constants_.insert(expr.constant);
    known_ &= expr.constant < 0;
  }

  void AddSize(const IntExpr& expr) {
    if (expr.kind == IntExpr::Kind::kSizeOf && expr.variable.empty()) {
      AddAxis(IntExpr::Constant(expr.constant));
    }
  }

  bool known_ = true;
  std::set<int64_t> constants_;
};

void InsertSymbols(const Extent& size, std::set<int>* symbols) {
  for (const auto& [symbol, coefficient] : size.terms()) symbols->insert(symbol);
}

// What the inputs have at the k-th axis from the end.
std::string DimText(const RuleInstance& instance, size_t k, SymbolRenaming* rename,
                    std::set<int>* symbols) {
  std::string text;
  for (const Shape& shape : instance.inputs) {
    if (shape.size() < k) {
      absl::StrAppend(&text, "-,");
      continue;
    }
    const Extent& size = shape[shape.size() - k];
    InsertSymbols(size, symbols);
    absl::StrAppend(&text, (*rename)(size).ToString(), ",");
  }
  return text;
}

// A text that instances have in common only if an order of dims makes them the same; or nullopt.
std::optional<std::string> WithoutOrderOfDims(const RuleInstance& instance,
                                              const std::set<int64_t>& constants) {
  size_t most = 0;
  for (const Shape& shape : instance.inputs) most = std::max(most, shape.size());
  std::map<int64_t, std::string> names;  // of axes
  for (const int64_t axis : constants) absl::StrAppend(&names[axis], axis, " ");
  for (const auto& [variable, axis] : instance.axes) absl::StrAppend(&names[axis], variable, " ");
  std::map<std::string, size_t> named;
  for (const auto& [axis, name] : names) named[name] = static_cast<size_t>(-axis);
  // Named dims may have sizes in common, and with the size variables.
  std::set<int> seen;
  SymbolRenaming rename;
  std::string text;
  for (const auto& [name, k] : named) {
    absl::StrAppend(&text, name, DimText(instance, k, &rename, &seen), ";");
  }
  for (const auto& [name, size] : instance.sizes) {
    InsertSymbols(size, &seen);
    absl::StrAppend(&text, name, "=", rename(size).ToString(), ";");
  }
  std::vector<std::string> others;
  for (size_t k = 1; k <= most; ++k) {
    if (names.contains(-static_cast<int64_t>(k))) continue;
    SymbolRenaming own;
    std::set<int> symbols;
    others.push_back(DimText(instance, k, &own, &symbols));
    for (const int symbol : symbols) {
      if (!seen.insert(symbol).second) return std::nullopt;
    }
  }
  std::sort(others.begin(), others.end());
  return absl::StrCat(text, absl::StrJoin(others, ";"));
}

}  // namespace

void DropSymmetric(const Rule& rule, std::vector<RuleInstance>* instances) {
  const NamedAxes axes(rule);
  if (!axes.known()) return;
  if (!std::all_of(instances->begin(), instances->end(), TreatsDimsAlikeIn)) return;
  std::set<std::string> seen;
  std::erase_if(*instances, [&](const RuleInstance& instance) {
    const std::optional<std::string> text = WithoutOrderOfDims(instance, axes.constants());
    return text.has_value() && !seen.insert(*text).second;
  });
}

}  // namespace isomer
