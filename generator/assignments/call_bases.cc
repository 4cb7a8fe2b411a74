#include "generator/assignments/call_bases.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "generator/assignments/sample_calls.h"

namespace isomer {
namespace {

// Calls of many axes and attributes would make thousands, alike but for these.
constexpr size_t kMostBases = 64;

const AttributePatternValue* ValueOf(const PatternNode& node, const std::string& name) {
  for (const AttributePattern& attribute : node.attributes) {
    if (attribute.name == name) return &attribute.value;
  }
  return nullptr;
}

// Binds a variable, or compares a constant.
bool BindInt(const IntExpr& expr, int64_t value, Binding* binding) {
  if (expr.kind == IntExpr::Kind::kVariable) {
    return binding->variables.emplace(expr.variable, value).first->second == value;
  }
  return expr.kind != IntExpr::Kind::kConstant || expr.constant == value;
}

// Binds the variables of the node's attributes to those of the call. False: a constant differs.
bool BindAttributes(const PatternNode& node, const SampleCall& call, Binding* binding) {
  for (const AttributePattern& attribute : node.attributes) {
    const AttributeValue* value = call.op.Find(attribute.name);
    if (value == nullptr) return false;
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      binding->attributes[variable->name] = *value;
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      const auto* given = std::get_if<double>(value);
      if (given == nullptr) return false;
      if (number->variables.empty() && number->constant != *given) return false;
      for (const std::string& name : number->variables) binding->numbers.emplace(name, *given);
    } else if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      const auto* given = std::get_if<int64_t>(value);
      if (given == nullptr) return false;
      const bool from_front = attribute.name == "axis" && *given >= 0;
      const int64_t axis = from_front ? *given - call.operands[0].rank() : *given;
      if (!BindInt(*expr, axis, binding)) return false;
    }
  }
  return true;
}

class BaseMaker {
 public:
  BaseMaker(const Rule& rule, int subject, TypeOracle* oracle)
      : rule_(rule), subject_(rule.source.nodes[subject]), oracle_(oracle) {}

  std::vector<Binding> Make() {
    for (const SampleCall& call : SampleCalls(subject_.kind)) {
      if (call.operands.size() != subject_.inputs.size()) continue;
      Binding binding = Start();
      if (!BindAttributes(subject_, call, &binding)) continue;
      const Condition* const split = SplitOfSubject();
      if (split == nullptr) {
        ForEachAxes(call, 0, binding);
        continue;
      }
      for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
        Binding chosen = binding;
        if (BindAxes(split->operand_axes, dim.operand_axes, &chosen) &&
            BindAxes(split->output_axes, dim.output_axes, &chosen)) {
          ForEachAxes(call, 0, chosen);
        }
      }
    }
    return std::move(bases_);
  }

 private:
  Binding Start() const {
    Binding binding;
    binding.inputs.resize(rule_.num_inputs);
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kDegree) binding.variables[variable.name] = 1;
    }
    return binding;
  }

  // The condition that ties axes to a dim of the call, or null.
  const Condition* SplitOfSubject() const {
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind == Condition::Kind::kSplitsDim &&
          rule_.source.nodes[condition.node].kind == subject_.kind) {
        return &condition;
      }
    }
    return nullptr;
  }

  static bool BindAxes(const std::vector<std::optional<IntExpr>>& expressions,
                       const std::vector<std::optional<int64_t>>& axes, Binding* binding) {
    for (size_t i = 0; i < std::min(expressions.size(), axes.size()); ++i) {
      if (expressions[i].has_value() != axes[i].has_value()) return false;
      if (axes[i].has_value() && !BindInt(*expressions[i], *axes[i], binding)) return false;
    }
    return true;
  }

  // Axes that the call leaves open take every value.
  void ForEachAxes(const SampleCall& call, size_t next, Binding binding) {
    if (bases_.size() >= kMostBases) return;
    while (next < rule_.variables.size() &&
           (rule_.variables[next].kind != VariableKind::kAxis ||
            binding.variables.count(rule_.variables[next].name) > 0)) {
      ++next;
    }
    if (next == rule_.variables.size()) return Finish(call, std::move(binding));
    for (int64_t axis = -1; axis >= -call.operands[0].rank(); --axis) {
      binding.variables[rule_.variables[next].name] = axis;
      ForEachAxes(call, next + 1, binding);
    }
  }

  void Finish(const SampleCall& call, Binding binding) {
    known_.assign(rule_.num_inputs, false);
    for (const PatternNode& node : rule_.source.nodes) {
      if (node.kind != subject_.kind || node.inputs.size() != call.operands.size()) continue;
      for (size_t o = 0; o < node.inputs.size(); ++o) {
        if (!Assign(node.inputs[o], call.operands[o], &binding)) return;
      }
    }
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kNumber) binding.numbers.emplace(variable.name, 2);
    }
    if (!AssignOthers(&binding)) return;
    if (InferPattern(rule_.source, binding, oracle_).has_value() && Admits(rule_, binding)) {
      bases_.push_back(std::move(binding));
    }
  }

  // The place of a node's axis in a tensor of this type; nullopt: it has none.
  std::optional<int64_t> AxisOf(const PatternNode& node, const TensorType& type,
                                const Binding& binding) const {
    const AttributePatternValue* value = ValueOf(node, "axis");
    const auto* expr = value == nullptr ? nullptr : std::get_if<IntExpr>(value);
    if (expr == nullptr) return std::nullopt;
    const int64_t at = type.rank() + Evaluate(*expr, binding);
    return at < 0 || at >= type.rank() ? std::nullopt : std::optional(at);
  }

  // Gives the inputs that `ref` is made of types such that it has `type`. False: they cannot have.
  bool Assign(PatternRef ref, const TensorType& type, Binding* binding) {
    if (ref.node < 0) {
      if (known_[ref.index]) return true;  // Whether it fits shows when types are inferred.
      known_[ref.index] = true;
      binding->inputs[ref.index] = type;
      return true;
    }
    const PatternNode& node = rule_.source.nodes[ref.node];
    if (node.kind == OpKind::kConcat) return AssignParts(node, type, binding);
    if (node.kind == OpKind::kSplit) return AssignWhole(node, ref.index, type, binding);
    for (PatternRef input : node.inputs) {
      if (!Assign(input, type, binding)) return false;
    }
    return true;
  }

  bool AssignParts(const PatternNode& node, const TensorType& type, Binding* binding) {
    const std::optional<int64_t> axis = AxisOf(node, type, *binding);
    const auto parts = static_cast<int64_t>(node.inputs.size());
    if (!axis.has_value() || type.dims[*axis].size < parts) return false;
    TensorType part = type;
    part.dims[*axis].size = type.dims[*axis].size / parts;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i + 1 == node.inputs.size()) {
        part.dims[*axis].size = type.dims[*axis].size - (parts - 1) * part.dims[*axis].size;
      }
      if (!Assign(node.inputs[i], part, binding)) return false;
    }
    return true;
  }

  // All parts are like the one that is known.
  bool AssignWhole(const PatternNode& node, int index, const TensorType& type, Binding* binding) {
    const std::optional<int64_t> axis = AxisOf(node, type, *binding);
    const AttributePatternValue* value = ValueOf(node, "sizes");
    const auto* sizes = value == nullptr ? nullptr : std::get_if<std::vector<IntExpr>>(value);
    if (!axis.has_value() || sizes == nullptr || index >= static_cast<int>(sizes->size())) {
      return false;
    }
    TensorType whole = type;
    whole.dims[*axis].size *= static_cast<int64_t>(sizes->size());
    for (const IntExpr& size : *sizes) {
      if (!BindInt(size, type.dims[*axis].size, binding)) return false;
    }
    return Assign(node.inputs[0], whole, binding);
  }

  // Inputs beside what is known are like it; sizes of Splits of what is known are halves.
  bool AssignOthers(Binding* binding) {
    std::vector<std::vector<TensorType>> types;
    for (const PatternNode& node : rule_.source.nodes) {
      std::vector<TensorType> operands;
      const TensorType* like = nullptr;
      for (PatternRef ref : node.inputs) {
        if (ref.node < 0 ? known_[ref.index] : true) {
          if (ref.node >= 0 && ref.index >= static_cast<int>(types[ref.node].size())) return false;
          like = ref.node < 0 ? &binding->inputs[ref.index] : &types[ref.node][ref.index];
        }
      }
      if (like == nullptr) return false;
      for (PatternRef ref : node.inputs) {
        if (ref.node < 0 && !known_[ref.index]) {
          known_[ref.index] = true;
          binding->inputs[ref.index] = TensorType(*like);
        }
        operands.push_back(ref.node < 0 ? binding->inputs[ref.index] : types[ref.node][ref.index]);
      }
      if (node.kind == OpKind::kSplit && !BindHalves(node, operands[0], binding)) return false;
      const absl::StatusOr<Operator> op = InstantiateOperator(node, *binding, operands[0].rank());
      if (!op.ok()) return false;
      const std::vector<TensorType>* inferred = oracle_->Infer(*op, operands);
      if (inferred == nullptr) return false;
      types.push_back(*inferred);
    }
    return std::find(known_.begin(), known_.end(), false) == known_.end();
  }

  bool BindHalves(const PatternNode& node, const TensorType& type, Binding* binding) const {
    const std::optional<int64_t> axis = AxisOf(node, type, *binding);
    const auto* sizes = std::get_if<std::vector<IntExpr>>(ValueOf(node, "sizes"));
    if (!axis.has_value() || sizes == nullptr) return false;
    const int64_t size = type.dims[*axis].size / static_cast<int64_t>(sizes->size());
    for (const IntExpr& expr : *sizes) {
      if (expr.kind == IntExpr::Kind::kVariable) binding->variables.emplace(expr.variable, size);
    }
    return true;
  }

  const Rule& rule_;
  const PatternNode& subject_;
  TypeOracle* const oracle_;
  std::vector<bool> known_;
  std::vector<Binding> bases_;
};

}  // namespace

std::vector<Binding> BasesAroundCall(const Rule& rule, int subject, TypeOracle* oracle) {
  return BaseMaker(rule, subject, oracle).Make();
}

}  // namespace isomer
