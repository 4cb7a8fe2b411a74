#include "rules/calls/bindings_at_call.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rules/calls/bind_call.h"

namespace isomer {
namespace {

class BindingsAtCall {
 public:
  using Visitor = absl::FunctionRef<void(const Binding&, const std::vector<bool>&)>;

  BindingsAtCall(const Rule& rule, int subject, const OperatorCall& call, PartSizes parts,
                 Visitor visit)
      : rule_(rule),
        subject_(rule.source.nodes[subject]),
        call_(call),
        parts_(parts),
        visit_(visit) {}

  void Visit(Binding binding) {
    binding.inputs.resize(rule_.num_inputs);
    if (!IsLikeSubject(subject_) || !BindAttributes(subject_, call_, &binding)) return;
    const Condition* const split = SplitOf(rule_);
    if (split == nullptr || rule_.source.nodes[split->node].kind != subject_.kind) {
      return ChooseAxes(0, std::move(binding));
    }
    for (const SplittableDim& dim : SplittableDims(call_.op, call_.operands)) {
      Binding tied = binding;
      if (BindAxes(*split, dim, &tied)) ChooseAxes(0, std::move(tied));
    }
  }

 private:
  bool IsLikeSubject(const PatternNode& node) const {
    return node.kind == subject_.kind && node.inputs.size() == call_.operands.size();
  }

  // Axis variables from `next` on that are still open take every value.
  void ChooseAxes(size_t next, Binding binding) {
    const auto is_open = [&](const RuleVariable& variable) {
      return variable.kind == VariableKind::kAxis && !binding.variables.contains(variable.name);
    };
    while (next < rule_.variables.size() && !is_open(rule_.variables[next])) ++next;
    if (next == rule_.variables.size()) return AssignOperands(std::move(binding));
    for (int64_t axis = -call_.operands[0].rank(); axis < 0; ++axis) {
      binding.variables[rule_.variables[next].name] = axis;
      ChooseAxes(next + 1, binding);
    }
  }

  void AssignOperands(Binding binding) {
    known_.assign(rule_.num_inputs, false);
    for (const PatternNode& node : rule_.source.nodes) {
      if (!IsLikeSubject(node)) continue;
      for (size_t o = 0; o < node.inputs.size(); ++o) {
        if (!Assign(node.inputs[o], call_.operands[o], &binding)) return;
      }
    }
    visit_(binding, known_);
  }

  // Gives the inputs that `ref` is made of types such that it has `type`. False: they cannot have.
  bool Assign(PatternRef ref, TensorType type, Binding* binding) {
    if (ref.node < 0) {
      // Whether a type that it has already fits shows when types are inferred.
      if (known_[ref.index]) return true;
      if (!ValidateTensorType(type).ok()) return false;  // A part that nothing is left for.
      known_[ref.index] = true;
      binding->inputs[ref.index] = std::move(type);
      return true;
    }
    const PatternNode& node = rule_.source.nodes[ref.node];
    if (node.kind == OpKind::kConcat) return AssignParts(node, std::move(type), binding);
    if (node.kind == OpKind::kSplit) return AssignWhole(node, ref.index, std::move(type), binding);
    if (const auto* swap = AttributeOf<SwapAxes>(node, "perm")) {
      if (type.rank() < std::max(-swap->a, -swap->b)) return false;
      std::swap(type.dims[type.rank() + swap->a], type.dims[type.rank() + swap->b]);
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](PatternRef input) { return Assign(input, type, binding); });
  }

  bool AssignParts(const PatternNode& node, TensorType part, Binding* binding) {
    Dim* const dim = DimAlongAxis(node, *binding, &part);
    if (dim == nullptr) return false;
    const int64_t equal = dim->size / static_cast<int64_t>(node.inputs.size());
    int64_t left = dim->size;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_last = i + 1 == node.inputs.size();
      dim->size = is_last ? left : parts_ == PartSizes::kEqual ? equal : left - left / 2;
      left -= dim->size;
      if (!Assign(node.inputs[i], part, binding)) return false;
    }
    return true;
  }

  bool AssignWhole(const PatternNode& node, int index, TensorType whole, Binding* binding) {
    Dim* const dim = DimAlongAxis(node, *binding, &whole);
    const auto* sizes = AttributeOf<std::vector<IntExpr>>(node, "sizes");
    if (dim == nullptr || sizes == nullptr) return false;
    const int64_t part = dim->size;
    const int64_t other = parts_ == PartSizes::kEqual ? part : std::max<int64_t>(1, part / 2);
    dim->size = 0;
    for (size_t s = 0; s < sizes->size(); ++s) {
      const IntExpr& size = (*sizes)[s];
      if (size.kind == IntExpr::Kind::kVariable) {
        binding->variables.emplace(size.variable, static_cast<int>(s) == index ? part : other);
      }
      dim->size += Evaluate(size, *binding);
    }
    return Assign(node.inputs[0], std::move(whole), binding);
  }

  const Rule& rule_;
  const PatternNode& subject_;
  const OperatorCall& call_;
  const PartSizes parts_;
  const Visitor visit_;
  std::vector<bool> known_;
};

}  // namespace

void ForEachBindingAt(
    const Rule& rule, int subject, const OperatorCall& call, const Binding& start, PartSizes parts,
    absl::FunctionRef<void(const Binding& binding, const std::vector<bool>& known)> visit) {
  BindingsAtCall(rule, subject, call, parts, visit).Visit(start);
}

}  // namespace isomer
