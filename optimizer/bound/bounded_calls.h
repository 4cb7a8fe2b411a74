// Lower bounds on the cost of every choice of all calls of a graph.
#ifndef ISOMER_OPTIMIZER_BOUND_BOUNDED_CALLS_H_
#define ISOMER_OPTIMIZER_BOUND_BOUNDED_CALLS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/bound/choice_parts.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Choices are on `devices` devices; pointers are the tables' and the BoundedGraph's.
struct BoundedCalls {
  const ComputeGraph* compute = nullptr;
  std::vector<const CallTables*> calls;                // per node
  std::vector<const std::vector<ChoiceParts>*> parts;  // per node
  double devices = 1;
  bool beside = false;       // some choices use the upper half: calls may be concurrent
  int end = 0;               // last call of the forward pass: the loss
  std::vector<int> outputs;  // outputs of `end` that are outputs of the graph
};

class BoundedGraph {
 public:
  // Both must outlive this. `loss`: the model output that is the loss.
  BoundedGraph(const Graph& graph, const std::string& loss, CostTables* tables);

  const ComputeGraph& compute() const { return compute_; }
  // Bounds for choices on the first `devices` devices, with `halves` also on their halves; sets the
  // tables' options so. Errors: a call does not type-check.
  absl::StatusOr<BoundedCalls> On(int64_t devices, bool halves);

 private:
  int FindEnd(const std::string& loss) const;

  const Graph& graph_;
  CostTables& tables_;
  ComputeGraph compute_;
  const std::vector<GradientSources> sources_;  // per node
  const int end_;
  std::map<std::pair<const CallTables*, std::string>, std::vector<ChoiceParts>> memo_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_BOUNDED_CALLS_H_
