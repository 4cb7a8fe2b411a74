#include "generator/assignments/call_bases.h"

#include <algorithm>

#include "generator/assignments/sample_calls.h"
#include "rules/calls/bind_call.h"
#include "rules/calls/bindings_at_call.h"

namespace isomer {
namespace {

// Calls of many axes and attributes would make thousands, alike but for these.
constexpr size_t kMostBases = 64;

// What a Split whose sizes are still open takes apart, it halves.
void BindSizes(const PatternNode& split, TensorType type, Binding* binding) {
  const Dim* dim = DimAlongAxis(split, *binding, &type);
  const auto* sizes = AttributeOf<std::vector<IntExpr>>(split, "sizes");
  if (dim == nullptr || sizes == nullptr) return;
  const int64_t part = dim->size / static_cast<int64_t>(sizes->size());
  for (const IntExpr& size : *sizes) {
    if (size.kind == IntExpr::Kind::kVariable) binding->variables.emplace(size.variable, part);
  }
}

class BaseMaker {
 public:
  BaseMaker(const Rule& rule, TypeOracle* oracle) : rule_(rule), oracle_(oracle) {}

  std::vector<Binding> Around(int subject) {
    Binding start;
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kDegree) start.variables[variable.name] = 1;
    }
    for (const OperatorCall& call : SampleCalls(rule_.source.nodes[subject].kind)) {
      ForEachBindingAt(
          rule_, subject, call, start, PartSizes::kEqual,
          [&](const Binding& binding, const std::vector<bool>& known) { Add(binding, known); });
    }
    return std::move(bases_);
  }

 private:
  void Add(Binding binding, std::vector<bool> known) {
    if (bases_.size() >= kMostBases) return;
    for (const RuleVariable& variable : rule_.variables) {
      if (variable.kind == VariableKind::kNumber) binding.numbers.emplace(variable.name, 2);
    }
    if (!AssignOthers(&known, &binding)) return;
    if (InferPattern(rule_.source, binding, oracle_).has_value() && Admits(rule_, binding)) {
      bases_.push_back(std::move(binding));
    }
  }

  // Inputs beside what is known are like it; sizes of Splits of what is known are halves.
  bool AssignOthers(std::vector<bool>* known, Binding* binding) {
    std::vector<std::vector<TensorType>> types;  // of the nodes so far
    for (const PatternNode& node : rule_.source.nodes) {
      const auto type_of = [&](PatternRef ref) {
        return ref.node < 0 ? &binding->inputs[ref.index] : &types[ref.node][ref.index];
      };
      const TensorType* like = nullptr;
      for (PatternRef ref : node.inputs) {
        if (ref.node >= 0 && ref.index >= static_cast<int>(types[ref.node].size())) return false;
        if (ref.node >= 0 || (*known)[ref.index]) like = type_of(ref);
      }
      if (like == nullptr) return false;
      std::vector<TensorType> operands;
      for (PatternRef ref : node.inputs) {
        if (ref.node < 0 && !(*known)[ref.index]) {
          (*known)[ref.index] = true;
          binding->inputs[ref.index] = TensorType(*like);
        }
        operands.push_back(*type_of(ref));
      }
      if (node.kind == OpKind::kSplit) BindSizes(node, operands[0], binding);
      const absl::StatusOr<Operator> op = InstantiateOperator(node, *binding, operands[0].rank());
      if (!op.ok()) return false;
      const std::vector<TensorType>* inferred = oracle_->Infer(*op, operands);
      if (inferred == nullptr) return false;
      types.push_back(*inferred);
    }
    return std::find(known->begin(), known->end(), false) == known->end();
  }

  const Rule& rule_;
  TypeOracle* const oracle_;
  std::vector<Binding> bases_;
};

}  // namespace

std::vector<Binding> BasesAroundCall(const Rule& rule, int subject, TypeOracle* oracle) {
  return BaseMaker(rule, oracle).Around(subject);
}

}  // namespace isomer
