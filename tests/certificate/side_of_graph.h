// Graphs as the sides of a step.
#ifndef ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_
#define ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_

#include "pcg/ir/graph.h"
#include "rules/language/rule.h"

namespace isomer {

// The graph as a side over its leaves, in order.
ConcreteSide SideOfGraph(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_TESTS_CERTIFICATE_SIDE_OF_GRAPH_H_
