// Layers whose results are kept, computed again or on the host, in tests of these.
#ifndef ISOMER_TESTS_PCG_SCHEDULE_LAYERS_H_
#define ISOMER_TESTS_PCG_SCHEDULE_LAYERS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Layers of a tanh after a product, all of one width; the loss is the mean of squares. As text.
inline std::string TanhLayers(int layers) {
  std::string text = "%0 = input \"x\" : f32[64,8]\n%1 = input \"t\" : f32[64,8]\n";
  int id = 2, last = 0;
  for (int layer = 0; layer < layers; ++layer, id += 3) {
    absl::StrAppend(&text, "%", id, " = weight \"w", layer, "\" : f32[8,8]\n");
    absl::StrAppend(&text, "%", id + 1, " = matmul(%", last, ", %", id, ") : f32[64,8]\n");
    absl::StrAppend(&text, "%", id + 2, " = tanh(%", id + 1, ") : f32[64,8]\n");
    last = id + 2;
  }
  absl::StrAppend(&text, "%", id, " = mse(%", last, ", %1) : f32[]\noutput \"loss\" = %", id, "\n");
  return text;
}

// All nodes but leaves.
inline std::vector<NodeId> ComputedNodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (!IsLeaf(graph.node({id}).op.kind())) nodes.push_back({id});
  }
  return nodes;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_LAYERS_H_
