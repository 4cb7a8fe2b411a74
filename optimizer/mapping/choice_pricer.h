// What the choices of one call cost by themselves: the call, its gradient, the exchange of halos,
// and bringing its weights up to date.
#ifndef ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_
#define ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_

#include <vector>

#include "optimizer/cost/cost.h"
#include "optimizer/mapping/cost_options.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// The synchronisation of gradients, and memory, are apart: what they count for varies in a search.
struct ChoiceCost {
  float us = kImpossibleUs, synchronisation_us = 0;
  double bytes = 0;
  int64_t saved_bytes = 0;  // of one task, for its gradient (SavedForGradient)
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
  std::vector<bool> wanted_;
  bool backward_ = false;
  // Of the choice at hand; the declaration stays.
  Sharding sharding_;
  std::vector<TensorType> types_;
  std::vector<DataType> output_dtypes_;
};

// Bytes that one device keeps for a call: stored operands with their gradients, and in training the
// outputs that the backward pass needs.
int64_t StoredBytes(const ShardingChoice& choice, const ComputeGraph::ComputeNode& node,
                    const CostOptions& options);

// What is float32 in the graph is computed in `precision`.
inline DataType ComputedIn(DataType precision, DataType dtype) {
  return dtype == DataType::kFloat32 ? precision : dtype;
}
// Of a number of a weight that the graph has in `dtype`, if all its users compute in `precision`.
WeightBytes BytesOfWeight(const CostOptions& options, DataType dtype);
// Of those, what a collective that keeps copies equal sends: weights as calls read them, or sums.
inline int64_t SentBytes(const WeightBytes& each, Collective kind) {
  return TraitsOf(kind).reduces ? each.reduced : each.stored;
}

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_CHOICE_PRICER_H_
