// Which results a plan computes again instead of keeping them for the backward pass.
//
// Two kinds of parts of a graph are offered, those first that free most memory for their time:
// segments between borders, of which the borders alone are kept (Chen et al. 2016, "Training Deep
// Nets with Sublinear Memory Cost"), and single calls whose operands are kept anyway (an activation
// function in front of a product). Borders are where the schedule keeps least: they minimise what
// the borders take and what the largest segment takes while it is computed again.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_SEGMENTS_H_
#define ISOMER_OPTIMIZER_SIMULATOR_SEGMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// What the results of a node take of each of its devices, in one micro-batch.
struct NodeResults {
  int64_t bytes = 0;       // made in the forward pass
  int64_t kept_bytes = 0;  // of these, until the backward pass, if nothing is computed again
  double us = 0;           // to make them
};
// By the plan's schedule, in float32. Per node of the plan's graph.
absl::StatusOr<std::vector<NodeResults>> ResultsOfNodes(const CostModel& cost, const Plan& plan);

// Nodes to compute again together.
struct Segment {
  std::vector<NodeId> nodes;
  int64_t bytes = 0;  // that are not kept then
  double us = 0;
};
// Those worth it, the most bytes for their time first; what is of the last segment comes last, as
// the backward pass begins with it.
std::vector<Segment> SegmentsToRecompute(const Graph& graph, absl::Span<const NodeResults> results);

// Plan::recomputed from little that is computed again to all of it: at most `levels`, by equal
// shares of the bytes.
std::vector<std::vector<NodeId>> LevelsOfRecomputation(absl::Span<const Segment> segments,
                                                       int levels);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_SEGMENTS_H_
