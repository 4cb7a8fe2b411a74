// What is tried on the plans that a search has found, because only the simulator sees what it
// brings: how long synchronisation keeps what comes behind it waiting, and what it hides behind.
//
//   splices   of two mappings of one graph, one that synchronises much (its weight in the tables is
//             low) and one that avoids it. Gradients of the last calls are ready first: what is
//             behind a cut is taken from the one, where there is time to hide it, what is before
//             the cut from the other
//   a walk    over the choices of a small graph by mcmc.h, from a mapping: calls that together
//             could be better, among branches or with a few large weights, where a sum over calls
//             and edges does not tell what waits for what
#ifndef ISOMER_OPTIMIZER_REFINEMENT_H_
#define ISOMER_OPTIMIZER_REFINEMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/contest.h"
#include "optimizer/cost_tables.h"
#include "optimizer/derivation.h"
#include "optimizer/restrictions.h"
#include "optimizer/stopping.h"
#include "pcg/plan.h"

namespace isomer {

// Predicts the plan of a mapping and lets it take part.
using ConsiderMapping = std::function<absl::StatusOr<Prediction>(const MappedModel& mapped)>;

// `mappings`: in falling order of the weight of synchronisation. Pairs of the same graph are
// spliced in several places, more finely around the best of them if that is about as fast as the
// best plan so far.
absl::Status ConsiderSplices(const std::vector<MappedModel>& mappings, double best_us,
                             const Deadline& deadline, const ConsiderMapping& consider);

// A mapping with a shorter step, if a walk finds one and the graph is small enough for one; on the
// devices of the tables' options. Deterministic for a seed. Errors: what task graphs do not know
// (task_graph.h).
absl::StatusOr<std::optional<MappedModel>> Walk(const Model& model, const MappedModel& mapped,
                                                uint64_t seed, const Deadline& deadline,
                                                const Restrictions* restrictions,
                                                CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REFINEMENT_H_
