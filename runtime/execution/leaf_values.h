// The initial values of a model's leaves, on demand: a device asks for the numbers of its shards,
// and nobody holds a whole model.
#ifndef ISOMER_RUNTIME_EXECUTION_LEAF_VALUES_H_
#define ISOMER_RUNTIME_EXECUTION_LEAF_VALUES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "runtime/execution/host_values.h"

namespace isomer {

class LeafValues {
 public:
  // The numbers of one leaf, in row-major order. Threads may read at the same time.
  class Leaf {
   public:
    virtual ~Leaf() = default;
    // `count` of them, from element `first` on, every `stride`-th.
    virtual void Read(int64_t first, int64_t stride, int64_t count, double* to) const = 0;
    // They are not read again soon.
    virtual void LetGo() const {}
  };
  virtual ~LeafValues() = default;
  // Lives as long as this. Errors name the leaf: it has no values, or not as many as elements.
  virtual absl::StatusOr<const Leaf*> Find(const Graph& graph, NodeId leaf) const = 0;
};

// The values that the model gives to its weights and constants, and for the others what is drawn
// from the seed: 1 for what scales a normalisation and for variances, small normal numbers for the
// rest (matrices and kernels with a deviation of 1/sqrt(fan in)). All are numbers of their leaf's
// data type. REQUIRES: `model` outlives it.
class InitialLeafValues : public LeafValues {
 public:
  InitialLeafValues(const Model& model, uint64_t seed);
  absl::StatusOr<const Leaf*> Find(const Graph& graph, NodeId leaf) const override;

 private:
  std::map<std::string, std::unique_ptr<const Leaf>> leaves_;
  std::map<std::string, int64_t> sizes_;  // of values
};

// Values that are held. REQUIRES: `values` outlives it.
class HeldLeafValues : public LeafValues {
 public:
  explicit HeldLeafValues(const HostValues& values);
  absl::StatusOr<const Leaf*> Find(const Graph& graph, NodeId leaf) const override;

 private:
  const HostValues& values_;
  std::map<std::string, std::unique_ptr<const Leaf>> leaves_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_LEAF_VALUES_H_
