// Simulated annealing over the choices of a small graph (mcmc.h), from the best mappings: calls
// that together could be better, among branches or with a few large weights, where a sum over calls
// and edges does not tell what waits for what. The objective is the simulated step; what is
// proposed the tables know (guided_walk.h); the order of calls is that of the plan that a walk
// begins with.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_WALKS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_WALKS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/proposer.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/simulator/move_memo.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// From the best mappings of each submachine, on the fewest devices first: from what is found there,
// with devices that idle, there is another walk on more devices if those of their own did not come
// as far. So a machine has all walks of its parts, and is never slower.
extern const Proposer kWalks;
// Changes of two neighbouring calls at once, from where the walks ended.
extern const Proposer kPairs;

// Of what a walk found, with its step where every gradient is synchronised by itself.
using ConsiderWalked =
    std::function<absl::StatusOr<Prediction>(const MappedModel& mapped, double without_buckets_us)>;

// Short walks from `mapped`, each from the best that those before it found, until a few have gained
// nothing, if the graph is small enough; on the devices of the tables' options. Deterministic for a
// seed. `us`: the step of `mapped`. `moves`: of walks before and after. Errors: what task graphs do
// not know (task_graph.h).
absl::Status ConsiderWalks(const Model& model, MappedModel mapped, double us, uint64_t seed,
                           const SearchPolicy& policy, const Deadline& deadline,
                           const Restrictions* restrictions, CostTables* tables, MoveMemo* moves,
                           const ConsiderWalked& consider);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_WALKS_H_
