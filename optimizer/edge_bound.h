// What moves between two calls, from below.
//
// Tables price partial sums that all of a group need as a reduce-scatter and what then brings the
// shares to all (reshard_cost.h); the schedule makes one all-reduce of them, which takes less where
// messages are small.
#ifndef ISOMER_OPTIMIZER_EDGE_BOUND_H_
#define ISOMER_OPTIMIZER_EDGE_BOUND_H_

#include <map>
#include <memory>
#include <tuple>

#include "optimizer/cost_tables.h"

namespace isomer {

class EdgeBounds {
 public:
  explicit EdgeBounds(CostTables* tables) : tables_(*tables) {}

  // As CostTables::EdgeUs, and no more than a plan's step counts.
  const CostTable& Us(PlacementSetId from, PlacementSetId to, bool gradient);

 private:
  // Of what the tables say a move takes.
  double LeastUs(double us, const Placement& from, const Placement& to) const;

  CostTables& tables_;
  std::map<std::tuple<PlacementSetId, PlacementSetId, bool>, std::unique_ptr<CostTable>> us_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_EDGE_BOUND_H_
