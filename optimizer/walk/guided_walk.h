// Table-guided proposals for a walk over the choices of a task graph (mcmc.h).
//
// FlexFlow proposes any choice for any operator: of some two hundred choices of a call a handful
// are worth a simulation, and a choice that suits no neighbour is useless until these follow. Here
// a call gets one of its cheapest choices by the tables, given its neighbours' choices, rarely any;
// then, sometimes, adjacent calls get their cheapest choices in turn. The simulator decides, as
// before.
//
// Such a walk ends where no single change of a call gains; changing two neighbours together may.
#ifndef ISOMER_OPTIMIZER_WALK_GUIDED_WALK_H_
#define ISOMER_OPTIMIZER_WALK_GUIDED_WALK_H_

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/simulator/move_memo.h"
#include "optimizer/simulator/task_graph.h"
#include "optimizer/walk/mcmc.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Proposer for `graph`, with the tables and restrictions that it was created with; all outlive the
// proposer.
absl::StatusOr<ProposeChange> GuidedProposer(const TaskGraph& graph,
                                             const Restrictions* restrictions, CostTables* tables);

// A mapping, and its step time in the order of calls that follows from it.
struct WalkedModel {
  MappedModel mapped;
  Picoseconds step = 0;
};

// Improves `mapped` by pairs: two neighbouring calls at a time get, of their cheapest joint choices
// by the tables, those with the shortest simulated step, for as long as any pair gains, also with
// calls in the order that then follows. `moves`: as in TaskGraph::Create.
absl::StatusOr<WalkedModel> WithBetterPairs(const Model& model, MappedModel mapped,
                                            const Restrictions* restrictions,
                                            const Deadline& deadline, CostTables* tables,
                                            MoveMemo* moves);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_WALK_GUIDED_WALK_H_
