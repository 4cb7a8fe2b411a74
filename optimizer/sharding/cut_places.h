// The places where a graph can be cut into pieces: after calls whose result is the only tensor that
// crosses, besides carried ones (splitting.h).
#ifndef ISOMER_OPTIMIZER_SHARDING_CUT_PLACES_H_
#define ISOMER_OPTIMIZER_SHARDING_CUT_PLACES_H_

#include <vector>

#include "optimizer/sharding/compute_graph.h"
#include "pcg/ir/graph.h"

namespace isomer {

struct Cut {
  int after;  // index in ComputeGraph::nodes
  TensorRef tensor;
};

// The lifetime of a tensor that calls use.
struct Lifetime {
  TensorRef tensor;
  int made, last_use;  // indices in ComputeGraph::nodes
};
// In order of tensors.
std::vector<Lifetime> LifetimesOf(const Graph& graph, const ComputeGraph& compute);

// In order of places.
std::vector<Cut> FindCuts(const Graph& graph, const ComputeGraph& compute,
                          const std::vector<Lifetime>& lifetimes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CUT_PLACES_H_
