// Bounds from below on a step that are sums over calls and what moves between them, and the best
// mixture of such bounds (a Lagrangian relaxation of the step).
//
// Each of these is a bound of its own (lower_bound.h says of which plans), the same device or path
// being followed through the step:
//
//   compute   what the first device, which every choice uses, computes
//   network   what its communication queue does
//   behind    the forward pass on it, then what its communication queue does in the backward pass
//   path      along the heaviest path there and back, then the last synchronisation and update
//   device    the path forward, then all that a device computes in the backward pass, and the
//             update, of calls on all devices
//   turns     the path forward and back to some call, then the synchronisation of that call and of
//             those before it, which become ready behind it: for several calls
//
// Choices make one of them short at the expense of another (replicas compute less and communicate
// more), so that the least of each alone says little. With weights that sum up to 1 the least of
// the weighted sum is a bound too, and is the least of a mapping (mapping.h). Weights are those of
// the game between weights and choices: each solution is one more column of a matrix game, whose
// value gives the next weights, until value and bound meet (Kelley's cutting planes).
#ifndef ISOMER_OPTIMIZER_BOUND_MIXTURE_H_
#define ISOMER_OPTIMIZER_BOUND_MIXTURE_H_

#include <functional>
#include <vector>

#include "optimizer/choice_parts.h"
#include "optimizer/compute_graph.h"
#include "optimizer/cost_tables.h"
#include "optimizer/edge_bound.h"

namespace isomer {

// What choices of all calls cost, on `devices` devices; all of it outlives the use.
struct BoundedCalls {
  const ComputeGraph* compute = nullptr;
  std::vector<const CallTables*> calls;                // per node
  std::vector<const std::vector<ChoiceParts>*> parts;  // per node
  double devices = 1;
};

// The greatest bound that mixtures give; ends early with one that is `enough` or more.
// REQUIRES: choices are on all devices or their first ones (CostOptions::halves is false).
double BestMixtureUs(const BoundedCalls& calls, double enough, EdgeBounds* edges,
                     CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_MIXTURE_H_
