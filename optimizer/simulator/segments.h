// Activation checkpointing: which results a plan recomputes instead of keeping them for the
// backward pass.
//
// Two kinds of subgraphs are candidates, ordered by memory freed per time: segments between
// borders, of which only the borders are kept (Chen et al. 2016, "Training Deep Nets with Sublinear
// Memory Cost"), and single calls whose operands are kept anyway (an activation function before a
// matrix product). Borders minimise the schedule's memory: their own bytes plus those of the
// largest segment during recomputation.
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

// Per-device memory and time of a node's results in one micro-batch.
struct NodeResults {
  int64_t bytes = 0;       // written in the forward pass
  int64_t kept_bytes = 0;  // of these, kept for the backward pass if nothing
  double us = 0;           // to compute them
  int32_t device = 0;      // the first that makes them
};
// Per node of the plan's graph, from its schedule, in float32.
absl::StatusOr<std::vector<NodeResults>> ResultsOfNodes(const CostModel& cost, const Plan& plan);

// Nodes that are recomputed together.
struct Segment {
  std::vector<NodeId> nodes;
  int64_t bytes = 0;  // freed
  double us = 0;
  int32_t device = 0;  // the first
};
// Segments worth recomputing, most bytes per time first; those of the last segment come last, as
// the backward pass begins there.
std::vector<Segment> SegmentsToRecompute(const Graph& graph, absl::Span<const NodeResults> results);

// Of nodes that a plan computes again, those that read each other are one; most bytes per time
// first.
std::vector<Segment> SegmentsOf(absl::Span<const NodeId> recomputed, const Graph& graph,
                                absl::Span<const NodeResults> results);

// Values of Plan::recomputed, from few nodes to all: at most `levels`, in equal steps of bytes. Of
// each device the same share: the stages of a pipeline stay as equal as they are.
std::vector<std::vector<NodeId>> LevelsOfRecomputation(absl::Span<const Segment> segments,
                                                       int levels);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_SEGMENTS_H_
