// What the choices of all calls of a graph cost at least: what bounds from below are made of.
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

// On `devices` devices; pointers are the tables' and the BoundedGraph's.
struct BoundedCalls {
  const ComputeGraph* compute = nullptr;
  std::vector<const CallTables*> calls;                // per node
  std::vector<const std::vector<ChoiceParts>*> parts;  // per node
  double devices = 1;
  bool beside = false;       // some choices are on the upper half of the devices
  int end = 0;               // the call that the forward pass ends with: of the loss
  std::vector<int> outputs;  // of `end`, those that are outputs of the graph
};

class BoundedGraph {
 public:
  // Both outlive this. `loss`: the output that training is for.
  BoundedGraph(const Graph& graph, const std::string& loss, CostTables* tables);

  const ComputeGraph& compute() const { return compute_; }
  // Sets the options of the tables: choices on the first `devices` devices, and with `halves` on
  // their halves. Errors: a call does not type-check.
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
