// A bound from below on the simulated step.
//
// Of which plans: those of `graph` as it is (substitutions make another graph, with a bound of its
// own), with one micro-batch, in which every call takes one of its choices (CostTables) on d
// devices, the same d for all, whatever d that divides the machine; weights updated by the tables'
// method, in buckets of any size; calls in any order. Pipelines are not among them (plan_bound.h
// has theirs). Where branches run beside each other on halves of the machine the resources (of a
// half, half of them), the paths without what moves, and a mixture for either half are known:
// beside_us, which is looser.
//
// A step is a forward pass, then the backward pass beside the synchronisation of gradients, then
// the update (pcg/schedule), each device working through its tasks in order. Hence, with l in
// [0, 1], the step takes at least
//
//   resources  of one device: the sum over its calls of forward + l (gradient + update)
//              + (1 - l) sync
//   paths      forward + l gradient + (1 - l) sync along any path of the graph, what moves over its
//              edges, there and back, and the last synchronisation and update
//   mixture    of several sums over calls and edges (relaxed_step.h, bound_mixture.h), the minimum
//              of a mapping
//
// where gradients include adding them up, sync takes the rate of the largest messages, as buckets
// do, and is counted once for a weight that several calls use. Updates are on no path: they may be
// done at once, while the next gradient is on its way. The least over all choices of the longest
// path is found by the reductions of mapping (mapping.h), in which two branches cost not their sum
// but the largest of
//
//   the one's path, the other's path, the resources of both
//
// each at its own least. Graphs that are not series-parallel are relaxed where reductions stop: the
// first node behind the start becomes one copy per edge that leaves it, each free to choose
// otherwise; its resources stay with the first. Each is the least of functions that are linear in
// l, so concave in l, and so is easily made greatest; the greatest is the bound for d devices, the
// least over d the bound.
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
  double resources_us = 0;  // what the resources alone give, for d and l
  double beside_us = 0;     // of plans with calls beside each other, too
};

struct BoundOptions {
  std::string loss = {};  // the output that training is for
  int solutions = 6;      // of mappings, for a mixture
  int64_t devices = 0;    // d, if it is given
  // On more devices nothing that moves counts, which takes long to find: resources, and paths of
  // calls.
  int64_t most_devices = 32;
  int cuts = 0;  // of the space, for each number of devices (bound_tree.h)
  // Of plans with calls beside each other: LowerBound::beside_us is what is wanted.
  bool beside = false;
  double enough_us = 1e30;  // where that is reached, nothing more is tried
  Deadline deadline = {};   // when that is over, a bound that is quickly found is all there is
};

// `tables` has its options back afterwards. Errors: a call does not type-check.
absl::StatusOr<LowerBound> BoundStep(const Graph& graph, const BoundOptions& options,
                                     CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_LOWER_BOUND_H_
