// Lower bounds on transfers between two calls, as a step schedules them (move_bound.h), in tables
// like those of mapping (CostTables::EdgeUs), which are estimates.
#ifndef ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "optimizer/bound/move_bound.h"
#include "optimizer/mapping/cost_tables.h"

namespace isomer {

// Transfer times over an edge per choice of its ends, forward and backward; and the part that the
// first device waits for: 0 if it has what it needs.
struct EdgeParts {
  CostTable there, back, waited_there, waited_back;
};

class EdgeBounds {
 public:
  explicit EdgeBounds(CostTables* tables) : tables_(*tables), moves_(tables->cost()) {}

  // Forward plus backward.
  const CostTable& Us(PlacementSetId from, PlacementSetId to, bool gradient);
  const EdgeParts& Parts(PlacementSetId from, PlacementSetId to, bool gradient);
  // Per placement: time of gathering its shards into one tensor on its first device.
  std::vector<float> OutputUs(PlacementSetId from) const;

 private:
  CostTables& tables_;
  MoveBounds moves_;
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool>, std::unique_ptr<CostTable>> us_;
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool>, std::unique_ptr<EdgeParts>> parts_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_
