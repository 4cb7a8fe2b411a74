// Graphs as the sides of a step, and what they compute.
#ifndef ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_
#define ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_

#include <cstdint>
#include <vector>

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

// The graph as a side over its leaves, in order.
ConcreteSide SideOfGraph(const Graph& graph);

// The first output where the leaves hold what `seed` draws, by the evaluator.
std::vector<double> OutputOfRandomLeaves(const Graph& graph, uint32_t seed);

}  // namespace isomer

#endif  // ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_
