#include "generator/assignments/bases.h"

#include <algorithm>
#include <functional>

#include "generator/assignments/call_bases.h"
#include "generator/assignments/sample_calls.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

// Degrees 1, numbers 2, axes -1, sizes `size`.
Binding Start(const Rule& rule, int64_t size) {
  Binding binding;
  for (const RuleVariable& variable : rule.variables) {
    switch (variable.kind) {
      case VariableKind::kAxis:
        binding.variables[variable.name] = -1;
        break;
      case VariableKind::kDegree:
        binding.variables[variable.name] = 1;
        break;
      case VariableKind::kSize:
        binding.variables[variable.name] = size;
        break;
      case VariableKind::kNumber:
        binding.numbers[variable.name] = 2;
        break;
      case VariableKind::kAttribute:
        break;
    }
  }
  return binding;
}

bool SourceChecks(const Rule& rule, const Binding& binding, TypeOracle* oracle) {
  return InferPattern(rule.source, binding, oracle).has_value();
}

// Assignments of one rule that are tried before it is given up: many axes have many.
constexpr int kMostTries = 20000;

// Tries every assignment of axes; true and `binding` changed at the first that type-checks.
// `tries`: those that are left.
bool FindAxes(const Rule& rule, size_t next, int rank, Binding* binding, TypeOracle* oracle,
              int* tries) {
  if (next == rule.variables.size()) {
    return (*tries)-- > 0 && SourceChecks(rule, *binding, oracle);
  }
  const RuleVariable& variable = rule.variables[next];
  if (variable.kind != VariableKind::kAxis)
    return FindAxes(rule, next + 1, rank, binding, oracle, tries);
  for (int64_t axis = -1; axis >= -rank; --axis) {
    binding->variables[variable.name] = axis;
    if (FindAxes(rule, next + 1, rank, binding, oracle, tries)) return true;
    if (*tries <= 0) return false;
  }
  return false;
}

// Tries 1, 2, 3, .. units for one dim of each input after another.
bool FindSizes(const Rule& rule, int64_t unit, size_t input, Binding* binding, TypeOracle* oracle,
               int* tries) {
  int rank = 0;
  for (const TensorType& type : binding->inputs) rank = std::max(rank, type.rank());
  if (input == binding->inputs.size()) return FindAxes(rule, 0, rank, binding, oracle, tries);
  if (FindSizes(rule, unit, input + 1, binding, oracle, tries)) return true;
  for (Dim& dim : binding->inputs[input].dims) {
    for (int64_t times : {2, 3, 4}) {
      dim.size = times * unit;
      if (FindSizes(rule, unit, input + 1, binding, oracle, tries)) return true;
      if (*tries <= 0) return false;
    }
    dim.size = unit;
  }
  return false;
}

// The source node that has attribute variables, or null.
const PatternNode* NodeWithAttributes(const Rule& rule) {
  for (const PatternNode& node : rule.source.nodes) {
    for (const AttributePattern& a : node.attributes) {
      if (std::holds_alternative<AttributeVariable>(a.value)) return &node;
    }
  }
  return nullptr;
}

// Whether the operands of `node` are the inputs in order, themselves or under parallel operators.
bool HasInputsAsOperands(const Rule& rule, const PatternNode& node) {
  for (size_t o = 0; o < node.inputs.size(); ++o) {
    PatternRef ref = node.inputs[o];
    while (ref.node >= 0 && IsParallel(rule.source.nodes[ref.node].kind)) {
      ref = rule.source.nodes[ref.node].inputs[0];
    }
    if (ref != PatternRef::Input(static_cast<int>(o))) return false;
  }
  return static_cast<int>(node.inputs.size()) == rule.num_inputs;
}

// Index tensors where operators take some.
void GiveDataTypes(const Rule& rule, Binding* binding) {
  for (const PatternNode& node : rule.source.nodes) {
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const PatternRef input = node.inputs[o];
      if (input.node >= 0) continue;
      DataType& dtype = binding->inputs[input.index].dtype;
      if (IsIndexOperand(node.kind, static_cast<int>(o))) dtype = DataType::kInt64;
      if (IsConditionOperand(node.kind, static_cast<int>(o))) dtype = DataType::kBool;
    }
  }
}

// The sample calls of `node`, whose operands are the inputs of `rule` in order.
std::vector<Binding> BasesOfCalls(const Rule& rule, const PatternNode& node, int64_t unit,
                                  TypeOracle* oracle) {
  std::vector<Binding> bases;
  for (const OperatorCall& call : SampleCalls(node.kind)) {
    if (static_cast<int>(call.operands.size()) != rule.num_inputs) continue;
    Binding binding = Start(rule, unit);
    binding.inputs = call.operands;
    for (const AttributePattern& a : node.attributes) {
      if (auto* v = std::get_if<AttributeVariable>(&a.value)) {
        binding.attributes[v->name] = *call.op.Find(a.name);
      } else if (auto* n = std::get_if<NumberExpr>(&a.value);
                 n != nullptr && n->variables.size() == 1) {
        binding.numbers[n->variables[0]] = call.op.Number(a.name);
      }
    }
    int tries = kMostTries;
    if (FindAxes(rule, 0, call.operands[0].rank(), &binding, oracle, &tries)) {
      bases.push_back(std::move(binding));
    }
  }
  return bases;
}

}  // namespace

std::vector<Binding> BasesOf(const Rule& rule, int64_t unit, TypeOracle* oracle) {
  if (const PatternNode* node = NodeWithAttributes(rule); node != nullptr) {
    std::vector<Binding> bases;
    if (HasInputsAsOperands(rule, *node)) bases = BasesOfCalls(rule, *node, unit, oracle);
    if (!bases.empty()) return bases;
    return BasesAroundCall(rule, static_cast<int>(node - rule.source.nodes.data()), oracle);
  }
  std::vector<Binding> bases;
  for (const std::vector<int>& ranks : rule.ranks) {
    Binding binding = Start(rule, unit);
    for (int rank : ranks) {
      binding.inputs.push_back(SequentialType(std::vector<int64_t>(rank, unit)));
    }
    GiveDataTypes(rule, &binding);
    int tries = kMostTries;
    if (FindSizes(rule, unit, 0, &binding, oracle, &tries)) bases.push_back(std::move(binding));
  }
  // An operator may fix sizes, such as the four gates of a cell.
  if (bases.empty()) bases = BasesOfCalls(rule, rule.source.nodes[0], unit, oracle);
  for (size_t n = 0; n < rule.source.nodes.size() && bases.empty(); ++n) {
    bases = BasesAroundCall(rule, static_cast<int>(n), oracle);
  }
  return bases;
}

}  // namespace isomer
