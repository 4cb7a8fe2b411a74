// A quick estimate of a step's gain, which orders the candidates of the substitution search.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_STEP_ESTIMATE_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_STEP_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/sharding/compute_graph.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {

// Kernel times of unsplit calls on one device, all but the launches divided by the number of
// devices. Communication, and limits of splitting, are left to the mapping.
class StepEstimator {
 public:
  explicit StepEstimator(const CostTables& tables);

  // Time of the nodes that `match` adds minus that of nodes left without use, in us per step.
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
