// What a step changes, roughly and at once: the order in which the substitution search maps.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_STEP_ESTIMATE_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_STEP_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/sharding/compute_graph.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

// Times of kernels on one device at the sizes of the whole, divided by the devices but for the
// launches. Communication, and what cannot be split, are left to the mapping.
class StepEstimator {
 public:
  explicit StepEstimator(const CostTables& tables);

  // The time of what `match` adds, less that of what it leaves without use; us of the step.
  float DeltaUs(const GraphIndex& index, const ComputeGraph& compute, const RuleMatch& match);

 private:
  float CallUs(const Graph& graph, NodeId id);
  float TargetUs(const Graph& graph, const RuleMatch& match, const std::vector<bool>& stored);

  const CostModel& cost_;
  double launch_us_, passes_, devices_;
  absl::flat_hash_map<uint64_t, float> calls_, targets_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_STEP_ESTIMATE_H_
