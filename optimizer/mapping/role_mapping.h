// Manual mappings: every call gets the first possible one of a list of sharding preferences, which
// are stated by the roles of its dims (batch_dims.h).
#ifndef ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_
#define ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/compute_graph.h"

namespace isomer {

// A choice by its axes; devices left over are idle. `model` and `expert`: the iteration dims split
// by tensor and expert parallelism, which later calls are told; -1: none. `model` may be one that
// this call does not split, for those that can.
struct ShardingPreference {
  std::vector<Axis> axes;
  int64_t start = 0;  // relative to the first device
  int model = -1;
  int expert = -1;
};

struct CallToMap {
  NodeId id;
  const ComputeGraph::ComputeNode& node;
  const ChoiceSpace& space;
  const std::vector<DimRole>& roles;  // per iteration dim
  int64_t devices;                    // to distribute

  const Declaration& declaration() const { return space.sharding.declaration; }
  // The first iteration dim of this role that a rule splits, or kIdleAxis.
  int DimOf(DimRole role) const;
  // Whether this multiplies a tensor by a stored one.
  bool IsProductWithWeight() const { return node.operands.size() == 2 && ByWeight(); }
  // The greatest common divisor of `degree` and the dim's size in a micro-batch.
  int64_t DegreeFor(int dim, int64_t degree) const;
  // Data parallelism: splits the batch (of a micro-batch) over as many of `devices` as divide it; a
  // layout call on weights, in the dim that splits furthest. Last, the unsplit call on the first
  // device.
  void AddDataParallel(std::vector<ShardingPreference>* preferences) const;
  // Splits the dim that splits furthest, if any. A weight that other calls read as well (a tied
  // embedding) is then all-gathered, not broadcast by one device.
  void AddArrangedWeight(std::vector<ShardingPreference>* preferences) const;

 private:
  bool ByWeight() const;
};

// Preferences for one call, best first. Must end with some that are always possible
// (AddDataParallel's are).
using PreferencesOfCall = std::function<std::vector<ShardingPreference>(const CallToMap&)>;

// Maps the calls of `mapped` that have no choice: layout calls on weights, which a piece of the
// graph cannot tell from weights stored in that layout.
absl::Status MapArrangedWeights(CostTables* tables, MappedModel* mapped);

// Maps `graph` onto the devices and micro-batches of the tables' options. Calls of equal operator,
// types and roles get the same choice, unless `by_place` says that preferences depend on the call's
// position in the graph.
absl::StatusOr<MappedModel> MapByRoles(const Graph& graph, const PreferencesOfCall& preferences,
                                       bool by_place, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_
