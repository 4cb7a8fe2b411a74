// The series-parallel structure of a directed acyclic graph.
//
// Only the order counts that the edges imply (a skip edge over a chain changes nothing). In that
// partial order, parts are in parallel if no node of one is ordered with a node of the other, and
// in series if every node of one comes before every node of the other. The decomposition exists
// exactly for orders without an induced "N" (Valdes, Tarjan, Lawler 1982).
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SERIES_PARALLEL_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SERIES_PARALLEL_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace isomer {

struct SeriesParallel {
  enum class Kind { kNode, kSeries, kParallel };
  Kind kind = Kind::kNode;
  int node = -1;                      // kNode
  std::vector<SeriesParallel> parts;  // in order; of another kind than the whole

  // "S(0, P(1, 2))".
  std::string ToString() const;
};

// Edges (from, to) over nodes 0 .. num_nodes-1. No value: not series-parallel.
// REQUIRES: num_nodes > 0, no cycle.
std::optional<SeriesParallel> DecomposeSeriesParallel(
    int num_nodes, const std::vector<std::pair<int, int>>& edges);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SERIES_PARALLEL_H_
