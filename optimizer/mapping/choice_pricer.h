// Prices the choices of one call: forward, gradient, halo exchange and weight update.
#ifndef ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_
#define ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_

#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/mapping/cost_options.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// Gradient synchronisation and memory are separate: a search varies their weights.
struct ChoiceCost {
  float us = kImpossibleUs, synchronisation_us = 0;
  double bytes = 0;
  int64_t saved_bytes = 0;  // per task, for its gradient (SavedForGradient)
};

class ChoicePricer {
 public:
  // All must outlive this.
  ChoicePricer(const CostModel& cost, const CostOptions& options, const ChoiceSpace& space,
               const ComputeGraph::ComputeNode& node);
  ChoiceCost CostOf(const ShardingChoice& choice);

 private:
  double UpdateUs(const Placement& weight, const ShardingChoice& choice, double* sync_us) const;
  void SetSharding(const ShardingChoice& choice);

  const CostModel& cost_;
  const CostOptions& options_;
  const ChoiceSpace& space_;
  const ComputeGraph::ComputeNode& node_;
  const Operator op_;  // as computed
  std::vector<bool> wanted_;
  bool backward_ = false;
  // For the current choice; the declaration is set once.
  Sharding sharding_;
  std::vector<TensorType> types_;
  std::vector<DataType> output_dtypes_;
};

// Bytes that one device keeps for a call: stored operands with their gradients, and in training the
// outputs that the backward pass needs.
int64_t StoredBytes(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options);

// The type in which a tensor of `dtype` is computed: `precision` for float32.
inline DataType ComputedIn(DataType precision, DataType dtype) {
  return dtype == DataType::kFloat32 ? precision : dtype;
}
// The call as it is computed: a product with a stored operand in 8 bits, if the options say so.
Operator AsComputed(const Operator& op, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options);
// Bytes per element of a weight that is `dtype` in the graph, if all its users compute in
// `precision`.
WeightBytes BytesOfWeight(const CostOptions& options, DataType dtype);
// Bytes per element that a collective of the weight update sends: stored weights for all-gather and
// broadcast, gradient sums for others.
inline int64_t SentBytes(const WeightBytes& each, Collective kind) {
  return TraitsOf(kind).reduces ? each.reduced : each.stored;
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_
