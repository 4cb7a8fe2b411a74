#include "verifier/values/representative_bindings.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "pcg/ir/type_inference.h"
#include "rules/calls/bind_call.h"
#include "rules/calls/bindings_at_call.h"
#include "verifier/terms/representative_calls.h"
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

  void At(const OperatorCall& call) {
    const auto go_on = [&](Binding binding) {
      SetNamedSizes(&binding);
      BindOthers(0, binding);
    };
    ForEachBindingAt(rule_, subject_, call, Binding(), PartSizes::kUnlike,
                     [&](const Binding& binding, const std::vector<bool>& known) {
                       if (std::find(known.begin(), known.end(), false) == known.end()) {
                         go_on(binding);
                       } else {
                         ForEachCompletion(rule_.source, known, binding, go_on);
                       }
                     });
  }

 private:
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
    for (const OperatorCall& call : CallsToTry(node.kind)) {
      if (!seen.insert(call.op.ToString()).second) continue;
      Binding bound = binding;
      if (BindAttributes(node, call, &bound)) BindOthers(n + 1, bound);
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
};

// The nodes of the source that may be representative calls: the one that the rule's condition
// speaks of, or all.
std::vector<int> Subjects(const Rule& rule) {
  if (const Condition* const split = SplitOf(rule)) return {split->node};
  std::vector<int> subjects;
  for (size_t n = 0; n < rule.source.nodes.size(); ++n) subjects.push_back(static_cast<int>(n));
  return subjects;
}

}  // namespace

namespace {

std::vector<Binding> BindingsOfSource(const Rule& rule) {
  std::vector<Binding> found;
  // Values are floats, unless the rule takes none.
  for (const DataType type : {DataType::kFloat32, DataType::kInt64, DataType::kBool}) {
    for (int subject : Subjects(rule)) {
      BindingMaker maker(rule, subject, &found);
      for (OperatorCall call : CallsToTry(rule.source.nodes[subject].kind)) {
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
      for (const OperatorCall& call : CallsToTry(node.kind)) {
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
  if (!found.empty() || SplitOf(rule) != nullptr || rule.target.nodes.empty()) return found;
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
