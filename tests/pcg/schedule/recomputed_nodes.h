#ifndef ISOMER_TESTS_PCG_SCHEDULE_RECOMPUTED_NODES_H_
#define ISOMER_TESTS_PCG_SCHEDULE_RECOMPUTED_NODES_H_

#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

// All nodes but leaves.
inline std::vector<NodeId> ComputedNodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (!IsLeaf(graph.node({id}).op.kind())) nodes.push_back({id});
  }
  return nodes;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_RECOMPUTED_NODES_H_
