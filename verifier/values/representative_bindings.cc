#include "verifier/values/representative_bindings.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "pcg/ir/examples.h"
#include "pcg/ir/type_inference.h"
#include "verifier/values/operand_completion.h"

namespace isomer {
namespace {

const AttributePattern* FindAttribute(const PatternNode& node, const std::string& name) {
  for (const AttributePattern& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

bool IsAdmitted(const Rule& rule, const Binding& binding) {
  for (const TensorType& type : binding.inputs) {
    if (!ValidateTensorType(type).ok()) return false;
  }
  return Admits(rule, binding) && InstantiatePattern(rule.source, binding).ok();
}

// Makes bindings of which node `subject` of the source is a given call.
class BindingMaker {
 public:
  BindingMaker(const Rule& rule, int subject, std::vector<Binding>* found)
      : rule_(rule), subject_(subject), found_(found) {}

  void At(const RepresentativeCall& call) {
    const PatternNode& node = rule_.source.nodes[subject_];
    if (node.inputs.size() != call.operands.size()) return;
    Binding binding;
    binding.inputs.resize(rule_.num_inputs);
    if (!BindAttributes(node, call.op, call.operands[0].rank(), &binding)) return;
    ForEachAxes(call, binding, [&](Binding chosen) {
      known_.assign(rule_.num_inputs, false);
      for (const PatternNode& other : rule_.source.nodes) {
        if (other.kind != node.kind || other.inputs.size() != call.operands.size()) continue;
        for (size_t o = 0; o < other.inputs.size(); ++o) {
          if (!Assign(other.inputs[o], call.operands[o], &chosen)) return;
        }
      }
      if (std::find(known_.begin(), known_.end(), false) == known_.end()) {
        SetNamedSizes(&chosen);
        BindOthers(0, chosen);
      } else {
        ForEachCompletion(rule_.source, known_, chosen, [&](Binding completed) {
          SetNamedSizes(&completed);
          BindOthers(0, completed);
        });
      }
    });
  }

 private:
  // Axes of a kSplitsDim condition are those of each dim of the call; others take every value.
  void ForEachAxes(const RepresentativeCall& call, const Binding& binding,
                   const std::function<void(Binding)>& visit) const {
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind != Condition::Kind::kSplitsDim) continue;
      for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
        Binding chosen = binding;
        if (BindAxes(condition.operand_axes, dim.operand_axes, &chosen) &&
            BindAxes(condition.output_axes, dim.output_axes, &chosen)) {
          visit(chosen);
        }
      }
      return;
    }
    std::vector<std::string> free;
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kAxis && !binding.variables.contains(variable.name)) {
        free.push_back(variable.name);
      }
    }
    std::function<void(size_t, Binding)> each = [&](size_t i, Binding chosen) {
      if (i == free.size()) return visit(chosen);
      for (int64_t axis = -call.operands[0].rank(); axis < 0; ++axis) {
        chosen.variables[free[i]] = axis;
        each(i + 1, chosen);
      }
    };
    each(0, binding);
  }

  static bool BindAxes(const std::vector<std::optional<IntExpr>>& exprs,
                       const std::vector<std::optional<int64_t>>& axes, Binding* binding) {
    for (size_t i = 0; i < std::max(exprs.size(), axes.size()); ++i) {
      const bool named = i < exprs.size() && exprs[i].has_value();
      const bool led = i < axes.size() && axes[i].has_value();
      if (named != led) return false;
      if (!named) continue;
      if (exprs[i]->kind == IntExpr::Kind::kConstant && exprs[i]->constant != *axes[i])
        return false;
      if (exprs[i]->kind == IntExpr::Kind::kVariable) {
        binding->variables[exprs[i]->variable] = *axes[i];
      }
    }
    return true;
  }

  // Gives the inputs that `ref` is made of types such that it has `type`.
  bool Assign(PatternRef ref, const TensorType& type, Binding* binding) {
    if (ref.node < 0) {
      if (!known_[ref.index]) binding->inputs[ref.index] = type;
      known_[ref.index] = true;
      return true;
    }
    const PatternNode& node = rule_.source.nodes[ref.node];
    const AttributePattern* attribute = FindAttribute(node, "axis");
    if (attribute != nullptr && !std::holds_alternative<IntExpr>(attribute->value)) return false;
    const int64_t axis =
        attribute == nullptr ? 0 : Evaluate(std::get<IntExpr>(attribute->value), *binding);
    const int64_t at = type.rank() + axis;
    if (attribute != nullptr && (at < 0 || at >= type.rank())) return false;
    if (node.kind == OpKind::kConcat) {
      int64_t left = type.dims[at].size;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        TensorType part = type;
        part.dims[at].size = i + 1 == node.inputs.size() ? left : left - left / 2;
        left -= part.dims[at].size;
        if (!Assign(node.inputs[i], part, binding)) return false;
      }
      return true;
    }
    if (node.kind == OpKind::kSplit) {
      const auto* sizes = std::get_if<std::vector<IntExpr>>(&FindAttribute(node, "sizes")->value);
      if (sizes == nullptr) return false;
      TensorType whole = type;
      whole.dims[at].size = 0;
      for (size_t s = 0; s < sizes->size(); ++s) {
        const std::string& name = (*sizes)[s].variable;
        const int64_t size = static_cast<int>(s) == ref.index
                                 ? type.dims[at].size
                                 : std::max<int64_t>(1, type.dims[at].size / 2);
        if (!binding->variables.contains(name)) binding->variables[name] = size;
        whole.dims[at].size += binding->variables[name];
      }
      return Assign(node.inputs[0], whole, binding);
    }
    TensorType operand = type;
    const AttributePattern* perm = FindAttribute(node, "perm");
    if (perm != nullptr && std::holds_alternative<SwapAxes>(perm->value)) {
      const auto [a, b] = std::get<SwapAxes>(perm->value);
      if (type.rank() < std::max(-a, -b)) return false;
      std::swap(operand.dims[type.rank() + a], operand.dims[type.rank() + b]);
    }
    for (PatternRef input : node.inputs) {
      if (!Assign(input, operand, binding)) return false;
    }
    return true;
  }

  // Sizes that the rule's conditions name.
  void SetNamedSizes(Binding* binding) const {
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind != Condition::Kind::kEqual ||
          condition.left.kind != IntExpr::Kind::kSizeOf || !condition.left.variable.empty() ||
          condition.right.kind != IntExpr::Kind::kConstant) {
        continue;
      }
      TensorType& type = binding->inputs[condition.left.input];
      const int64_t at = type.rank() + condition.left.constant;
      if (at >= 0 && at < type.rank()) type.dims[at].size = condition.right.constant;
    }
  }

  // Binds what other calls' attributes leave open, from their representative calls; then sizes of
  // Splits, from the shapes of what they split.
  void BindOthers(size_t n, const Binding& binding) {
    if (n == rule_.source.nodes.size()) return Finish(binding);
    const PatternNode& node = rule_.source.nodes[n];
    if (!HasOpenAttributes(node, binding)) return BindOthers(n + 1, binding);
    std::set<std::string> seen;
    for (const RepresentativeCall& call : CallsToTry(node.kind)) {
      if (!seen.insert(call.op.ToString()).second) continue;
      Binding bound = binding;
      if (BindAttributes(node, call.op, call.operands[0].rank(), &bound)) BindOthers(n + 1, bound);
    }
  }

  void Finish(Binding binding) {
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kNumber && !binding.numbers.contains(variable.name)) {
        binding.numbers[variable.name] = 1.5;
      }
    }
    if (BindSizes(&binding) && IsAdmitted(rule_, binding)) found_->push_back(std::move(binding));
  }

  bool BindSizes(Binding* binding) const {
    std::vector<std::vector<TensorType>> types;
    for (const PatternNode& node : rule_.source.nodes) {
      std::vector<TensorType> operands;
      for (PatternRef ref : node.inputs) {
        // A representative Split may have fewer parts than the rule uses.
        if (ref.node >= 0 && ref.index >= static_cast<int>(types[ref.node].size())) return false;
        operands.push_back(ref.node < 0 ? binding->inputs[ref.index] : types[ref.node][ref.index]);
      }
      const AttributePattern* sizes = FindAttribute(node, "sizes");
      if (node.kind == OpKind::kSplit &&
          std::holds_alternative<std::vector<IntExpr>>(sizes->value)) {
        const auto* axis = std::get_if<IntExpr>(&FindAttribute(node, "axis")->value);
        if (axis == nullptr) return false;
        const int64_t at = operands[0].rank() + Evaluate(*axis, *binding);
        if (at < 0 || at >= operands[0].rank()) return false;
        int64_t left = operands[0].dims[at].size;
        for (const IntExpr& size : std::get<std::vector<IntExpr>>(sizes->value)) {
          const bool last = &size == &std::get<std::vector<IntExpr>>(sizes->value).back();
          int64_t& bound = binding->variables[size.variable];
          if (bound == 0) bound = last ? left : std::max<int64_t>(1, left / 2 - 1);
          left -= bound;
        }
      }
      absl::StatusOr<Operator> op = InstantiateOperator(node, *binding, operands[0].rank());
      if (!op.ok()) return false;
      absl::StatusOr<std::vector<TensorType>> inferred = InferTypes(*op, operands);
      if (!inferred.ok()) return false;
      types.push_back(*std::move(inferred));
    }
    return true;
  }

  const Rule& rule_;
  const int subject_;
  std::vector<Binding>* const found_;
  std::vector<bool> known_;
};

// The nodes of the source that may be representative calls: the one that the rule's condition
// speaks of, or all.
std::vector<int> Subjects(const Rule& rule) {
  for (const Condition& condition : rule.conditions) {
    if (condition.kind == Condition::Kind::kSplitsDim) return {condition.node};
  }
  std::vector<int> subjects;
  for (size_t n = 0; n < rule.source.nodes.size(); ++n) subjects.push_back(static_cast<int>(n));
  return subjects;
}

}  // namespace

std::vector<RepresentativeCall> CallsToTry(OpKind kind) {
  std::vector<RepresentativeCall> calls = RepresentativeCalls(kind);
  for (ExampleCall& example : ExamplesOf(kind)) {
    const bool known = std::any_of(calls.begin(), calls.end(), [&](const auto& call) {
      return call.op == example.op && call.operands == example.operands;
    });
    if (!known) calls.push_back({std::move(example.op), std::move(example.operands)});
  }
  return calls;
}

namespace {

std::vector<Binding> BindingsOfSource(const Rule& rule) {
  std::vector<Binding> found;
  // Values are floats, unless the rule takes none.
  for (const DataType type : {DataType::kFloat32, DataType::kInt64, DataType::kBool}) {
    for (int subject : Subjects(rule)) {
      BindingMaker maker(rule, subject, &found);
      for (RepresentativeCall call : CallsToTry(rule.source.nodes[subject].kind)) {
        for (TensorType& operand : call.operands) {
          if (operand.dtype == DataType::kFloat32) operand.dtype = type;
        }
        maker.At(call);
      }
    }
    if (!found.empty()) break;
  }
  return found;
}

// The values that an attribute variable has in representative calls, where it is one number: a
// mode, a kind of reduction, the type that a Cast makes. Lists are shapes of windows.
std::vector<AttributeValue> ScalarValuesOf(const Rule& rule, const std::string& variable) {
  std::vector<AttributeValue> values;
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& attribute : node.attributes) {
      const auto* named = std::get_if<AttributeVariable>(&attribute.value);
      if (named == nullptr || named->name != variable) continue;
      for (const RepresentativeCall& call : CallsToTry(node.kind)) {
        const AttributeValue* value = call.op.Find(attribute.name);
        if (value == nullptr || !std::holds_alternative<int64_t>(*value)) continue;
        if (std::find(values.begin(), values.end(), *value) == values.end()) {
          values.push_back(*value);
        }
      }
    }
  }
  return values;
}

// Calls of one kind that differ in such a number may be of different structures: each binding is
// tried with every value.
void VaryScalars(const Rule& rule, std::vector<Binding>* bindings) {
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind != VariableKind::kAttribute) continue;
    const std::vector<AttributeValue> values = ScalarValuesOf(rule, variable.name);
    if (values.size() < 2) continue;
    const size_t count = bindings->size();
    for (size_t b = 0; b < count; ++b) {
      for (const AttributeValue& value : values) {
        Binding varied = (*bindings)[b];
        AttributeValue& bound = varied.attributes.at(variable.name);
        if (bound == value) continue;
        bound = value;
        if (IsAdmitted(rule, varied)) bindings->push_back(std::move(varied));
      }
    }
  }
}

std::vector<Binding> RepresentativeBindingsOfSides(const Rule& rule) {
  std::vector<Binding> found = BindingsOfSource(rule);
  const bool about_source =
      std::any_of(rule.conditions.begin(), rule.conditions.end(),
                  [](const auto& c) { return c.kind == Condition::Kind::kSplitsDim; });
  if (!found.empty() || about_source || rule.target.nodes.empty()) return found;
  // The inputs of a source may be no operands of a representative call, and those of the target be.
  Rule reversed = rule;
  std::swap(reversed.source, reversed.target);
  found = BindingsOfSource(reversed);
  std::erase_if(found, [&](const Binding& binding) { return !IsAdmitted(rule, binding); });
  return found;
}

}  // namespace

std::vector<Binding> RepresentativeBindings(const Rule& rule) {
  std::vector<Binding> bindings = RepresentativeBindingsOfSides(rule);
  VaryScalars(rule, &bindings);
  return bindings;
}

std::vector<Binding> BindingsNear(const Rule& rule, const Binding& binding) {
  std::vector<std::function<int64_t*(Binding*)>> slots;
  for (size_t x = 0; x < binding.inputs.size(); ++x) {
    for (size_t i = 0; i < binding.inputs[x].dims.size(); ++i) {
      slots.push_back([x, i](Binding* b) { return &b->inputs[x].dims[i].size; });
    }
  }
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind != VariableKind::kSize) continue;
    slots.push_back([name = variable.name](Binding* b) { return &b->variables[name]; });
  }
  // One less or one more: a window that strides meets one end of its steps or the other.
  const std::function<int64_t(int64_t)> changes[] = {
      [](int64_t) { return int64_t{1}; }, [](int64_t size) { return size - 1; },
      [](int64_t size) { return size + 1; }, [](int64_t size) { return 2 * size; }};
  std::vector<Binding> near;
  for (const auto& change : changes) {
    for (size_t a = 0; a < slots.size(); ++a) {
      for (size_t b = a; b < slots.size(); ++b) {
        Binding other = binding;
        *slots[a](&other) = change(*slots[a](&other));
        if (b != a) *slots[b](&other) = change(*slots[b](&other));
        if (IsAdmitted(rule, other)) near.push_back(std::move(other));
      }
    }
  }
  return near;
}

}  // namespace isomer
