// A lower bound on the simulated step.
//
// It holds for plans on `graph` without substitutions (a rewritten graph has a bound of its own),
// with one micro-batch, in which every call takes one of its choices (CostTables) on d devices, the
// same d for all, for any d that divides the machine; weights updated by the tables' method, in
// buckets of any size; calls in any order. Pipelines are excluded (plan_bound.h has theirs). If
// branches run concurrently on halves of the machine, the bound is looser (beside_us): resources
// (of a half, half of them), paths without transfers, and a mixture for either half.
//
// A step is a forward pass, then the backward pass overlapped with gradient synchronisation, then
// the update (pcg/schedule), each device running its tasks in order. Hence, with l in [0, 1], the
// step takes at least
//
//   resources  of one device: the sum over its calls of forward + l (gradient + update)
//              + (1 - l) sync
//   paths      forward + l gradient + (1 - l) sync along any path of the graph, the transfers over
//              its edges, forward and backward, and the last synchronisation and update
//   mixture    of several sums over calls and edges (relaxed_step.h, bound_mixture.h), the minimum
//              of a mapping
//
// where gradients include adding them up, and sync has the bandwidth of the largest messages, as in
// buckets, and counts once for a weight that several calls use. Updates are on no path: they may be
// immediate, while the next gradient is in transfer. The minimum over all choices of the longest
// path comes from the reductions of mapping (mapping.h), in which two branches cost not their sum
// but the maximum of
//
//   the one's path, the other's path, the resources of both
//
// each at its own minimum. Graphs that are not series-parallel are relaxed where reductions stop:
// the first node after the start becomes one copy per outgoing edge, each with a free choice; its
// resources stay with the first copy. Each is a minimum of functions linear in l, so concave in l,
// and easily maximised; the maximum is the bound for d devices, the minimum over d the bound.
#ifndef ISOMER_OPTIMIZER_BOUND_LOWER_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_LOWER_BOUND_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/ir/graph.h"
#include "pcg/support/stopping.h"

namespace isomer {

struct LowerBound {
  double step_us = 0;
  int64_t devices = 0;      // d
  double compute_part = 1;  // l
  const char* by = "";      // "resources", "paths" or "mixture"; plan_bound.h
  double resources_us = 0;  // bound by resources alone, for d and l
  double beside_us = 0;     // bound that also holds with concurrent calls
};

struct BoundOptions {
  std::string loss = {};  // the model output that is the loss
  int solutions = 6;      // mappings per mixture
  int64_t devices = 0;    // d; 0: any
  // On more devices transfers count nothing, as they take long to bound: only resources, and paths
  // of calls.
  int64_t most_devices = 32;
  int cuts = 0;  // branchings per number of devices (bound_tree.h)
  // For plans with concurrent calls: the caller wants LowerBound::beside_us.
  bool beside = false;
  double enough_us = 1e30;  // stops at a bound of so much
  Deadline deadline = {};   // after it, only quick bounds
};

// Restores the options of `tables`. Errors: a call does not type-check.
absl::StatusOr<LowerBound> BoundStep(const Graph& graph, const BoundOptions& options,
                                     CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_LOWER_BOUND_H_
