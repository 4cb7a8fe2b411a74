// Which results a plan computes again instead of keeping them for the backward pass: all but the
// borders of segments of the graph (Chen et al. 2016, "Training Deep Nets with Sublinear Memory
// Cost").
#ifndef ISOMER_OPTIMIZER_SEGMENTS_H_
#define ISOMER_OPTIMIZER_SEGMENTS_H_

#include <vector>

#include "pcg/graph.h"

namespace isomer {

// The nodes of a plan's graph but leaves and borders. A border is a call that all later ones depend
// on through nothing else, but weights and what is fed; a segment has at least `min_nodes` nodes.
// Ascending. Few borders: `min_nodes` of the square root of the number of nodes keeps least.
std::vector<NodeId> NodesBetweenBorders(const Graph& graph, int min_nodes);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEGMENTS_H_
