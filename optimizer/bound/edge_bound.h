// What moves between two calls, as a step counts it (move_bound.h): in tables, like those that
// mapping works on (CostTables::EdgeUs), which estimate it.
#ifndef ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_
#define ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "optimizer/bound/move_bound.h"
#include "optimizer/mapping/cost_tables.h"

namespace isomer {

// What moves over an edge, per choice of its ends, forward and back; and what of it the first
// device waits for: nothing if it holds what it needs.
struct EdgeParts {
  CostTable there, back, waited_there, waited_back;
};

class EdgeBounds {
 public:
  explicit EdgeBounds(CostTables* tables) : tables_(*tables), moves_(tables->cost()) {}

  // There and back.
  const CostTable& Us(PlacementSetId from, PlacementSetId to, bool gradient);
  const EdgeParts& Parts(PlacementSetId from, PlacementSetId to, bool gradient);
  // Per placement, of bringing what it has to the first of its devices as one tensor.
  std::vector<float> OutputUs(PlacementSetId from) const;

 private:
  CostTables& tables_;
  MoveBounds moves_;
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool>, std::unique_ptr<CostTable>> us_;
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool>, std::unique_ptr<EdgeParts>> parts_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_EDGE_BOUND_H_
