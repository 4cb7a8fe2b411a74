// Proposals for a walk over the choices of a task graph (mcmc.h) that know the tables.
//
// FlexFlow proposes any choice for any operator: of some two hundred choices of a call a handful is
// worth a simulation, and a choice that suits no neighbour is worth nothing until these follow.
// Here a call gets one of the choices that the tables like best where its neighbours are as they
// are, rarely any; then, sometimes, calls beside it get what suits them best by now. The simulator
// decides as ever.
//
// Where such a walk ends, no call alone leads further; two neighbours together may.
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

// For `graph`, with the tables and restrictions that it was created with; all outlive the proposer.
absl::StatusOr<ProposeChange> GuidedProposer(const TaskGraph& graph,
                                             const Restrictions* restrictions, CostTables* tables);

// A mapping, and its step in the order of calls that follows from it.
struct WalkedModel {
  MappedModel mapped;
  Picoseconds step = 0;
};

// From `mapped`, two neighbouring calls at a time get those of the choices that the tables like
// best of both together by which the step is shortest, for as long as any two shorten it, also with
// calls in the order that then follows. `moves`: as in TaskGraph::Create.
absl::StatusOr<WalkedModel> WithBetterPairs(const Model& model, MappedModel mapped,
                                            const Restrictions* restrictions,
                                            const Deadline& deadline, CostTables* tables,
                                            MoveMemo* moves);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_WALK_GUIDED_WALK_H_
