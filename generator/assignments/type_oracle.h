// Type inference of many small calls: the same few calls come again and again, so each is inferred
// once.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_TYPE_ORACLE_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_TYPE_ORACLE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"
#include "rules/language/rule.h"

namespace isomer {

class TypeOracle {
 public:
  // Output types of a call; null if it does not type-check. The pointer lives until the next call.
  const std::vector<TensorType>* Infer(const Operator& op, const std::vector<TensorType>& operands);

 private:
  struct Call {
    Operator op;
    std::vector<TensorType> operands;
    friend bool operator==(const Call&, const Call&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Call& call) {
      return H::combine(std::move(h), call.op.Hash(), call.operands);
    }
  };
  absl::flat_hash_map<Call, std::optional<std::vector<TensorType>>> known_;
};

// Operators and types of one side of a rule under a binding.
struct TypedPattern {
  std::vector<Operator> ops;                     // per node
  std::vector<std::vector<TensorType>> outputs;  // per node
  const TensorType& TypeOf(const Binding& binding, PatternRef ref) const {
    return ref.node < 0 ? binding.inputs[ref.index] : outputs[ref.node][ref.index];
  }
};

// Nullopt if the pattern does not type-check.
std::optional<TypedPattern> InferPattern(const Pattern& pattern, const Binding& binding,
                                         TypeOracle* oracle);

// The types of the outputs of one side, or nullopt.
std::optional<std::vector<TensorType>> OutputTypes(const Pattern& pattern, const Binding& binding,
                                                   TypeOracle* oracle);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_TYPE_ORACLE_H_
