// One side of a rule as its devices run it: shard by shard, forward and backward.
//
// The reference evaluator (pcg/evaluation/evaluator.h) computes with meanings: copies of a tensor
// are one array there, and the gradient of Replicate is the identity. Here every copy and every
// partial sum is an array of its own. A task reads its own shards (and halos) and no others; its
// gradient goes to the shards that it read. So gradients are what training would find: each copy
// holds a share of the gradient, each partial sum a copy of it.
#ifndef ISOMER_GENERATOR_CHECKING_SHARDED_H_
#define ISOMER_GENERATOR_CHECKING_SHARDED_H_

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/box.h"
#include "rules/language/rule.h"

namespace isomer {

// A logical array for each micro-batch, partial and copy, of which shards are boxes.
template <typename T>
struct ShardedValue {
  TensorType type;
  std::vector<Array<T>> parts;  // [(micro_batch * partials + partial) * copies + copy]
  // Zero everywhere.
  explicit ShardedValue(const TensorType& type);
  // Copies are equal.
  explicit ShardedValue(const Value<T>& value);
  const Array<T>& part(int64_t micro_batch, int64_t partial, int64_t copy) const {
    return parts[(micro_batch * type.partials + partial) * type.copies + copy];
  }
  Array<T>& part(int64_t micro_batch, int64_t partial, int64_t copy) {
    return parts[(micro_batch * type.partials + partial) * type.copies + copy];
  }
};

// What one task of a declared operator reads and writes.
struct ShardTask {
  struct Place {
    Box box;
    int64_t partial = 0, copy = 0;
  };
  IterationBox box;
  std::vector<Place> operands, outputs;
};

struct ShardedCall {
  Operator op;
  std::vector<TensorType> outputs;
  Declaration declaration;       // of a declared operator
  std::vector<ShardTask> tasks;  // none for a parallel operator
};

// Calls that were spread over tasks before.
class ShardedCalls {
 public:
  // Errors: the call does not type-check; or, a bug of type inference, tasks and shards of an
  // operand do not correspond one to one.
  absl::StatusOr<std::shared_ptr<const ShardedCall>> Spread(
      const Operator& op, const std::vector<TensorType>& operands);

 private:
  struct Key {
    Operator op;
    std::vector<TensorType> operands;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.op.Hash(), key.operands);
    }
  };
  absl::flat_hash_map<Key, std::shared_ptr<const ShardedCall>> known_;
};

// A pattern under a binding.
struct ShardedPattern {
  std::vector<TensorType> inputs;
  std::vector<std::vector<PatternRef>> operands;  // per node
  std::vector<std::shared_ptr<const ShardedCall>> calls;
  std::vector<PatternRef> outputs;
  const TensorType& TypeOf(PatternRef ref) const {
    return ref.node < 0 ? inputs[ref.index] : calls[ref.node]->outputs[ref.index];
  }
};
absl::StatusOr<ShardedPattern> Spread(const Pattern& pattern, const Binding& binding,
                                      ShardedCalls* calls);

// Inputs, then the outputs of every node.
template <typename T>
struct ShardedValues {
  std::vector<ShardedValue<T>> inputs;
  std::vector<std::vector<ShardedValue<T>>> nodes;
  const ShardedValue<T>& operator[](PatternRef ref) const {
    return ref.node < 0 ? inputs[ref.index] : nodes[ref.node][ref.index];
  }
  ShardedValue<T>& operator[](PatternRef ref) {
    return ref.node < 0 ? inputs[ref.index] : nodes[ref.node][ref.index];
  }
};

// Errors: a look-up outside of its table.
template <typename T>
absl::StatusOr<ShardedValues<T>> RunForward(const ShardedPattern& pattern,
                                            std::vector<ShardedValue<T>> inputs);

// Gradients of the inputs, one array per copy and partial. `seeds`: of the outputs; of their types.
template <typename T>
absl::StatusOr<std::vector<ShardedValue<T>>> RunBackward(const ShardedPattern& pattern,
                                                         const ShardedValues<T>& values,
                                                         const std::vector<ShardedValue<T>>& seeds);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_CHECKING_SHARDED_H_
