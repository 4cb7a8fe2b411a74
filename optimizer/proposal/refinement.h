// What is tried on the plans that a search has found, because only the simulator sees what it
// brings: how long synchronisation keeps what comes behind it waiting, and what it hides behind.
//
//   splices   of two mappings of one graph, one that synchronises much (its weight in the tables is
//             low) and one that avoids it. Gradients of the last calls are ready first: what is
//             behind a cut is taken from the one, where there is time to hide it, what is before
//             the cut from the other
//   walks     over the choices of a small graph by mcmc.h, from a mapping: calls that together
//             could be better, among branches or with a few large weights, where a sum over calls
//             and edges does not tell what waits for what. What is proposed the tables know
//             (guided_walk.h); the order of calls is that of the plan that a walk begins with
#ifndef ISOMER_OPTIMIZER_PROPOSAL_REFINEMENT_H_
#define ISOMER_OPTIMIZER_PROPOSAL_REFINEMENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/simulator/move_memo.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Predicts the plan of a mapping and lets it take part.
using ConsiderMapping = std::function<absl::StatusOr<Prediction>(const MappedModel& mapped)>;
// Of what a walk found, with its step where every gradient is synchronised by itself.
using ConsiderWalked =
    std::function<absl::StatusOr<Prediction>(const MappedModel& mapped, double without_buckets_us)>;

// `mappings`: in falling order of the weight of synchronisation. Pairs of the same graph are
// spliced in several places, more finely around the best of them if that is about as fast as the
// best plan so far.
absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const Deadline& deadline, const ConsiderMapping& consider);

// Whether a graph is small enough for walks.
bool IsWorthWalking(int64_t calls, int64_t devices);

// Short walks from `mapped`, each from the best that those before it found, until a few have gained
// nothing, if the graph is small enough; on the devices of the tables' options. Deterministic for a
// seed. `us`: the step of `mapped`. `moves`: of walks before and after. Errors: what task graphs do
// not know (task_graph.h).
absl::Status ConsiderWalks(const Model& model, MappedModel mapped, double us, uint64_t seed,
                           const Deadline& deadline, const Restrictions* restrictions,
                           CostTables* tables, MoveMemo* moves, const ConsiderWalked& consider);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_REFINEMENT_H_
