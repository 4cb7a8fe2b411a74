#include "generator/assignments/type_oracle.h"

#include "pcg/ir/type_inference.h"

namespace isomer {

const std::vector<TensorType>* TypeOracle::Infer(const Operator& op,
                                                 const std::vector<TensorType>& operands) {
  // Random shapes do not repeat for ever.
  constexpr size_t kMostCalls = 200000;
  if (known_.size() > kMostCalls) known_.clear();
  auto [entry, fresh] = known_.try_emplace(Call{op, operands});
  if (fresh) {
    absl::StatusOr<std::vector<TensorType>> types = InferTypes(op, operands);
    if (types.ok()) entry->second = *std::move(types);
  }
  return entry->second.has_value() ? &*entry->second : nullptr;
}

std::optional<TypedPattern> InferPattern(const Pattern& pattern, const Binding& binding,
                                         TypeOracle* oracle) {
  TypedPattern typed;
  for (const PatternNode& node : pattern.nodes) {
    std::vector<TensorType> operands;
    for (PatternRef ref : node.inputs) {
      if (ref.node >= 0 && ref.index >= static_cast<int>(typed.outputs[ref.node].size())) {
        return std::nullopt;
      }
      operands.push_back(typed.TypeOf(binding, ref));
    }
    absl::StatusOr<Operator> op = InstantiateOperator(node, binding, operands[0].rank());
    if (!op.ok()) return std::nullopt;
    const std::vector<TensorType>* types = oracle->Infer(*op, operands);
    if (types == nullptr) return std::nullopt;
    typed.ops.push_back(*std::move(op));
    typed.outputs.push_back(*types);
  }
  for (PatternRef ref : pattern.outputs) {
    if (ref.node >= 0 && ref.index >= static_cast<int>(typed.outputs[ref.node].size())) {
      return std::nullopt;
    }
  }
  return typed;
}

std::optional<std::vector<TensorType>> OutputTypes(const Pattern& pattern, const Binding& binding,
                                                   TypeOracle* oracle) {
  const std::optional<TypedPattern> typed = InferPattern(pattern, binding, oracle);
  if (!typed.has_value()) return std::nullopt;
  std::vector<TensorType> types;
  for (PatternRef ref : pattern.outputs) types.push_back(typed->TypeOf(binding, ref));
  return types;
}

}  // namespace isomer
