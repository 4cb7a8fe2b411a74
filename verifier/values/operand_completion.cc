#include "verifier/values/operand_completion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "pcg/ir/declaration.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/type_inference.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

// Of the operands of `call` those that are `known` as they are, the others as large along the
// iteration dims that they share.
std::optional<std::vector<TensorType>> Resized(
    const RepresentativeCall& call, const std::vector<std::optional<TensorType>>& known) {
  std::vector<Shape> shapes;
  std::vector<TensorType> result = call.operands;
  for (const TensorType& type : call.operands) shapes.push_back(type.GlobalShape());
  const absl::StatusOr<Declaration> d = Declare(call.op, shapes);
  if (!d.ok()) return std::nullopt;
  std::map<int, int64_t> sizes;  // of iteration dims
  for (size_t o = 0; o < known.size(); ++o) {
    if (!known[o].has_value()) continue;
    if (known[o]->rank() != result[o].rank()) return std::nullopt;
    for (int i = 0; i < result[o].rank(); ++i) {
      sizes[d->LeadOfOperandDim(static_cast<int>(o), i)] = known[o]->dims[i].size;
    }
    result[o] = *known[o];
  }
  sizes.erase(-1);
  for (size_t o = 0; o < known.size(); ++o) {
    for (int i = 0; i < result[o].rank() && !known[o].has_value(); ++i) {
      const auto size = sizes.find(d->LeadOfOperandDim(static_cast<int>(o), i));
      if (size != sizes.end()) result[o].dims[i].size = size->second;
    }
  }
  return result;
}

class Completion {
 public:
  Completion(const Pattern& source, absl::FunctionRef<void(const Binding&)> visit)
      : source_(source), visit_(visit) {}

  void At(const Binding& binding, const std::vector<bool>& known) {
    if (types_.size() == source_.nodes.size()) return visit_(binding);
    const PatternNode& node = source_.nodes[types_.size()];
    std::vector<std::optional<TensorType>> operands;
    for (PatternRef ref : node.inputs) {
      if (ref.node >= 0) {
        // A representative Split may have fewer parts than the rule uses.
        if (ref.index >= static_cast<int>(types_[ref.node].size())) return;
        operands.emplace_back(types_[ref.node][ref.index]);
      } else if (known[ref.index]) {
        operands.emplace_back(binding.inputs[ref.index]);
      } else {
        operands.emplace_back();
      }
    }
    const bool complete =
        std::find(operands.begin(), operands.end(), std::nullopt) == operands.end();
    if (complete && !HasOpenAttributes(node, binding)) {
      std::vector<TensorType> all;
      for (const auto& operand : operands) all.push_back(*operand);
      return GoOn(node, all, binding, known);
    }
    for (const RepresentativeCall& call : CallsToTry(node.kind)) {
      if (call.operands.size() != operands.size()) continue;
      Binding bound = binding;
      if (!BindAttributes(node, call.op, call.operands[0].rank(), &bound)) continue;
      const auto all = Resized(call, operands);
      if (all.has_value()) GoOn(node, *all, bound, known);
    }
  }

 private:
  // With the operands of the next node decided.
  void GoOn(const PatternNode& node, const std::vector<TensorType>& operands, Binding binding,
            std::vector<bool> known) {
    const absl::StatusOr<Operator> op = InstantiateOperator(node, binding, operands[0].rank());
    if (!op.ok()) return;
    absl::StatusOr<std::vector<TensorType>> outputs = InferTypes(*op, operands);
    if (!outputs.ok()) return;
    for (size_t o = 0; o < operands.size(); ++o) {
      const PatternRef ref = node.inputs[o];
      if (ref.node >= 0 || known[ref.index]) continue;
      binding.inputs[ref.index] = operands[o];
      known[ref.index] = true;
    }
    types_.push_back(*std::move(outputs));
    At(binding, known);
    types_.pop_back();
  }

  const Pattern& source_;
  const absl::FunctionRef<void(const Binding&)> visit_;
  std::vector<std::vector<TensorType>> types_;  // of the nodes so far
};

}  // namespace

bool BindAttributes(const PatternNode& node, const Operator& op, int rank, Binding* binding) {
  for (const AttributePattern& pattern : node.attributes) {
    const AttributeValue* value = op.Find(pattern.name);
    if (value == nullptr) return false;
    if (auto* variable = std::get_if<AttributeVariable>(&pattern.value)) {
      binding->attributes[variable->name] = *value;
    } else if (auto* number = std::get_if<NumberExpr>(&pattern.value)) {
      const double given = std::get<double>(*value);
      if (number->variables.empty() && number->constant != given) return false;
      for (const std::string& name : number->variables) {
        if (!binding->numbers.contains(name)) binding->numbers[name] = given / number->constant;
      }
    } else if (auto* expr = std::get_if<IntExpr>(&pattern.value)) {
      int64_t given = std::get<int64_t>(*value);
      const bool is_of_operand = pattern.name == "axis" && !TraitsOf(op.kind()).axis_is_of_result;
      if (is_of_operand && given >= 0) given -= rank;
      if (expr->kind == IntExpr::Kind::kConstant && expr->constant != given) return false;
      if (expr->kind == IntExpr::Kind::kVariable) binding->variables[expr->variable] = given;
    }
  }
  return true;
}

bool HasOpenAttributes(const PatternNode& node, const Binding& binding) {
  for (const AttributePattern& attribute : node.attributes) {
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      if (!binding.attributes.contains(variable->name)) return true;
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      for (const std::string& name : number->variables) {
        if (!binding.numbers.contains(name)) return true;
      }
    }
  }
  return false;
}

void ForEachCompletion(const Pattern& source, const std::vector<bool>& known,
                       const Binding& binding, absl::FunctionRef<void(const Binding&)> visit) {
  Completion(source, visit).At(binding, known);
}

}  // namespace isomer
