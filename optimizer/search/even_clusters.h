// What a cluster of several kinds of devices is held against: clusters of one kind.
//
// For each kind there are two: all devices as if they were of that kind, and those of the kind
// alone, where they are whole nodes. A search plans for each. What it finds takes part on the
// uneven cluster itself: the plan for even devices, where the slow ones set the pace, or the plan
// on the devices of one kind, where the others do nothing. So no plan of the uneven cluster is
// worse than its better half's, and what is lost against even clusters is known.
#ifndef ISOMER_OPTIMIZER_SEARCH_EVEN_CLUSTERS_H_
#define ISOMER_OPTIMIZER_SEARCH_EVEN_CLUSTERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/cost/cost.h"
#include "optimizer/proposal/contest.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/ir/plan.h"
#include "pcg/support/stopping.h"

namespace isomer {

// The machine if all its devices, and their links, were those of one kind. REQUIRES: the machine is
// given by levels.
Machine AllOfKind(const Machine& machine, int kind);

// The devices of one kind as a machine of their own.
struct PartOfKind {
  Machine machine;
  int64_t first_device = 0;  // of `machine`, in the cluster of several kinds
};
// Absent: they are no consecutive nodes, or all there are.
std::optional<PartOfKind> NodesOfKind(const Machine& machine, int kind);

struct EvenCluster {
  Machine machine;           // of one kind
  int kind = 0;              // its index in the uneven one
  int64_t first_device = 0;  // of the uneven one
  bool is_part = false;      // the devices that there are; else all, as if they were of the kind
  Prediction there = {};  // the best plan for it, on it; a step of 0: there was no time to search
  bool fits = false;      // that plan, there
  std::optional<Prediction> here = {};  // the same plan, moved to the uneven cluster
};

// All of a machine of several kinds, given by levels; of others, none.
std::vector<EvenCluster> EvenClustersOf(const Machine& machine);

// Whether a search with these options is held against them: one that a user leaves free.
bool LooksAtEvenClusters(const Machine& machine, const OptimizeOptions& options);

// The plan for an even cluster as one for the uneven one, without predictions.
Plan MovedTo(const Machine& machine, const EvenCluster& even, Plan plan);

// Plans for each even cluster, with an equal part of the time that is left, and lets its plan take
// part on the machine itself: `result` is of that, searched as it is.
struct OptimizeResult;
absl::Status TryEvenClusters(const Model& model, const RuleIndex& rules, const CostModel& cost,
                             OptimizeOptions options, const Deadline& deadline,
                             OptimizeResult* result);

// The step if each device did as much work in a time as in a cluster where all are of its kind:
// without loss. 0: some kind has no plan that fits.
double StepWithoutLoss(const Machine& machine, const std::vector<EvenCluster>& even);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SEARCH_EVEN_CLUSTERS_H_
